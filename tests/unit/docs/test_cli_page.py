"""The page of what commands print as JSON."""

from collections.abc import Iterator
from typing import Any

import cli_page
import pytest
from cyclopts import App
from memorybus.surfaces.cli.app import build_app
from memorybus.surfaces.cli.results import RESULTS, schema

NO_JSON = {"completion", "top"}
"""Commands that print no JSON."""


def commands(app: App, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the names of all commands that do something."""
    names = [name for name in app if not name.startswith("-")]
    if path and (app.default_command is not None or not names):
        yield " ".join(path)
    for name in names:
        yield from commands(app[name], (*path, name))


def test_every_command_is_described() -> None:
    """Whoever adds a command says what it prints."""
    assert set(commands(build_app())) - NO_JSON == set(RESULTS)


def test_the_page_is_current() -> None:
    """The page and its schema are what the code says now; `make docs` writes them."""
    assert cli_page.PAGE.read_text() == cli_page.page(schema())


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ({"$ref": "#/$defs/Pause"}, "[`Pause`](#pause)"),
        ({"type": "array", "items": {"type": "string"}}, "list of string"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"enum": ["a", "b"]}, '`"a"`, `"b"`'),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "object of number"),
        ({}, "anything"),
    ],
)
def test_a_type_in_words(kind: dict[str, Any], words: str) -> None:
    """A schema is told in a few words."""
    assert cli_page.shown(kind) == words


def test_fields_are_explained_by_docstrings() -> None:
    """What a struct says of its fields stands in the table, also of several at once."""
    text = "A thing.\n\n    Attributes:\n        a: one,\n            or two.\n        b, c: both."
    assert cli_page.described(text) == (
        "A thing.",
        {"a": "one, or two.", "b": "both.", "c": "both."},
    )
