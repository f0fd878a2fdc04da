"""The pages agree with the code, and their links lead somewhere."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, get_args

import pytest
from cyclopts import App
from helpers.stories.statuses import JOBS, provider, status
from memorybus.health.finding import Code
from memorybus.health.metrics import status_metrics
from memorybus_console.cli.app import build_app
from memorybus_providers import registry
from memorybus_providers.adapters.ethos import EthosProvider
from memorybus_providers.adapters.hermes import HostedHermesProvider
from memorybus_providers.adapters.registry import RegistryProvider
from memorybus_providers.base import MemoryProvider

ROOT = Path(__file__).parents[3]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)|<img src=\"([^\"]+)\"")
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def pages() -> list[str]:
    """Return the tracked pages, and those that are about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in names.splitlines() if (ROOT / name).exists()]


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def test_every_link_of_a_page_leads_somewhere():
    """A reader who follows a link between pages finds the page, the picture and the section."""
    for name in pages():
        page = ROOT / name
        for path, anchor, picture in LINK.findall(BLOCK.sub("", page.read_text())):
            target = (page.parent / (path or picture)).resolve() if path or picture else page
            assert target.exists(), f"{name} links to {path or picture}"
            assert not anchor or anchor in anchors(target), f"{name} links to {path}#{anchor}"


PAGE: Final = (Path(__file__).parents[3] / "docs/providers/README.md").read_text()
ROW: Final = re.compile(r"^\| \[?`([a-z0-9:-]+)`(?:\]\([^)]*\))? \| (.*) \|$", re.MULTILINE)
HOSTED: Final[dict[str, type[MemoryProvider]]] = {
    "hermes:": HostedHermesProvider,
    "ethos:": EthosProvider,
    "registry:": RegistryProvider,
}
KINDS: Final = (*registry.registered_kinds(), *HOSTED)


def rows(table: str) -> dict[str, list[str]]:
    """Return the cells behind the kind, of each row of a table."""
    return {kind: cells.split(" | ") for kind, cells in ROW.findall(table)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_has_what_its_class_declares(kind):
    """Delivery, state, calls at once and abilities are those of the class (G4)."""
    provider = HOSTED.get(kind) or registry.load(kind)
    can = provider.capabilities
    digests = provider.digest is not MemoryProvider.digest
    abilities = (can.retracts, can.forgets, can.exports, digests)
    marks = ["yes" if able else "–" for able in abilities]
    calls = "several" if can.concurrent else "one"
    declared = rows(PAGE.partition("| kind | a recall is")[0])

    assert declared[kind] == [provider.delivery, provider.placement, calls, *marks]


def test_every_kind_has_its_costs_and_no_other_is_named():
    """Whoever adds a provider states what a recall costs and what an erasure leaves."""
    costs = rows(PAGE.partition("| kind | a recall is")[2])

    assert sorted(costs) == sorted(KINDS)
    assert all(len(cells) == 3 for cells in costs.values())


RULE = re.compile(r'def (test_\w+)\([^)]*\):\n\s+"""(.*?)"""', re.DOTALL)
GUARANTEES = (ROOT / "docs/guarantees.md").read_text()


def docstrings() -> dict[str, str]:
    """Return the docstring of every test by its name."""
    texts = (path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    return {name: rule for text in texts for name, rule in RULE.findall(text)}


def test_a_guarantee_names_three_tests_that_show_it():
    """A reader of a guarantee finds tests whose docstrings name it."""
    rules = docstrings()
    for number in range(1, 11):
        section = GUARANTEES.split(f"\n## G{number} ")[1].split("\n## ")[0]
        named = re.findall(r"`(test_\w+)`", section)
        assert len(named) >= 3
        assert [name for name in named if not re.search(rf"\bG{number}\b", rules[name])] == []


ARCHITECTURE = ROOT / "docs/architecture.md"
CODE = ("bus", "workers/memorybus_workers", "providers/memorybus_providers")
NAMED = re.compile(r'\b(?:name|thread_name_prefix|THREAD) ?= ?"(memorybus-[a-z-]+)"')


def named_threads() -> set[str]:
    """Return the names that the code gives to threads."""
    files = (path for root in CODE for path in (ROOT / root).rglob("*.py"))
    return {name for path in files for name in NAMED.findall(path.read_text())}


def documented_threads() -> set[str]:
    """Return the names of the page's table."""
    table = ARCHITECTURE.read_text().split("## Processes and threads\n")[1].split("\n## ")[0]
    return set(re.findall(r"`(memorybus-[a-z-]*[a-z])`", table))


def test_the_page_has_every_thread():
    """A thread that a stack or a list of threads shows is explained on the page."""
    assert documented_threads() == named_threads()


OPERATIONS = (Path(__file__).parents[3] / "docs/operations.md").read_text()


def first_cells(heading: str, start: str) -> str:
    """Return the first cells of a section's table, of the rows that begin so."""
    table = OPERATIONS.split(f"## {heading}\n")[1].split("\n## ")[0].split("\n### ")[0]
    return "".join(line.split("|")[1] for line in table.splitlines() if line.startswith(start))


def test_the_page_has_every_metric():
    """G10: every metric is explained in words, under the name that Prometheus sees."""
    names = re.findall(r"`(?:memorybus)?(_\w+)`", first_cells("Metrics", "| `memorybus_"))
    families = list(status_metrics(status(provider(), jobs=[JOBS]), "1", (), 0))
    suffix = {"counter": "_total", "info": "_info"}
    expected = {f"{one.name}{suffix.get(one.type, '')}" for one in families}
    assert {f"memorybus{name}" for name in names} == expected


def test_the_page_has_every_finding():
    """G10: whoever reads a finding's code is led to what it means and what to do."""
    assert set(re.findall(r"`(\w+)`", first_cells("Alerts and findings", "| `"))) == {
        *get_args(Code)
    }


COMMAND_BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
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
    shown = IN_BLOCK.findall("\n".join(COMMAND_BLOCK.findall(page)))
    for text in (*IN_TEXT.findall(COMMAND_BLOCK.sub("", page)), *shown):
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


def test_a_page_names_commands_that_exist():
    """What a reader copies from a page is no unknown command and has no unknown option."""
    texts = {name: (ROOT / name).read_text() for name in pages() if name != "CHANGELOG.md"}
    commands = {(name, command) for name, text in texts.items() for command in named(text)}
    assert {(name, command) for name, command in commands if missing(command)} == set()


def test_the_list_of_commands_has_every_command():
    """docs/commands.md names each command by its last word, in a row of its first."""
    page = (ROOT / "docs/commands.md").read_text()
    rows = [set(re.findall(r"[a-z-]+", line.split(" | ")[0])) for line in page.splitlines()]
    assert [path for path in known() if not any(set(path) <= row for row in rows)] == []
