"""The pages name commands and options that exist, and the list of commands has all of them."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from cyclopts import App
from memorybus_console.cli.app import build_app

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
IN_TEXT = re.compile(r"`memorybus ([a-z-]+[^`]*)`")
IN_BLOCK = re.compile(r"^(?: {3})?(?:\$ )?memorybus ([a-z-]+.*)$", re.MULTILINE)
OPTION = re.compile(r"(?<=\s)--[a-z][a-z-]+")
NO_COMMAND = {"archive 1"}
"""What is quoted and is no command: the first words of a manifest."""


def commands(app: App, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], App]]:
    """Yield the path of each command and group."""
    for name in (name for name in app if not name.startswith("-")):
        yield (*path, name), app[name]
        yield from commands(app[name], (*path, name))


def options(app: App) -> set[str]:
    """Return the options of a command, and the names of its further commands."""
    arguments = app.assemble_argument_collection() if app.default_command else ()
    return set(app).union(*(argument.names for argument in arguments))


@cache
def known() -> dict[tuple[str, ...], set[str]]:
    """Return the options of each command and group."""
    return {path: options(app) for path, app in commands(build_app())}


@cache
def groups() -> set[tuple[str, ...]]:
    """Return the paths that do nothing by themselves."""
    return {path for path, app in commands(build_app()) if app.default_command is None}


def named(page: str) -> Iterator[str]:
    """Yield the commands that a page shows in its text and in its examples."""
    shown = IN_BLOCK.findall("\n".join(BLOCK.findall(page)))
    for text in (*IN_TEXT.findall(BLOCK.sub("", page)), *shown):
        command = " ".join(text.split(" #")[0].split())
        if command not in NO_COMMAND:
            yield command


def missing(command: str) -> str:
    """Return what of a command does not exist, or "" if all of it does."""
    words = command.split()
    path = next((p for n in (3, 2, 1) if (p := tuple(words[:n])) in known()), None)
    if path is None:
        return words[0]
    further = words[len(path) :]
    if further and path in groups() and re.fullmatch(r"[a-z-]+", further[0]):
        return further[0]
    return " ".join(name for name in OPTION.findall(command) if name not in known()[path])


PAGES = subprocess.run(
    ["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True
).stdout.split()


@pytest.mark.parametrize("name", [name for name in PAGES if name != "CHANGELOG.md"])
def test_a_page_names_commands_that_exist(name):
    """What a reader copies from a page is no unknown command and has no unknown option."""
    page = ROOT / name
    text = page.read_text() if page.exists() else ""
    unknown = {command: absent for command in named(text) if (absent := missing(command))}
    assert unknown == {}


def test_the_list_of_commands_has_every_command():
    """docs/commands.md names each command by its last word, in a row of its first."""
    page = (ROOT / "docs/commands.md").read_text()
    rows = [set(re.findall(r"[a-z-]+", line.split(" | ")[0])) for line in page.splitlines()]
    assert [path for path in known() if not any(set(path) <= row for row in rows)] == []
