"""``memorybus schema``: the schema of what a command prints as JSON."""

import json
from collections.abc import Iterator

import jsonschema
import pytest
from cyclopts import App
from memorybus_console.cli import main
from memorybus_console.cli.app import build_app
from memorybus_console.cli.schema import commands_with_json

NO_JSON = {"completion", "hook", "mcp", "top"}
"""Commands that print no JSON."""


def commands(app: App, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the names of all commands that do something."""
    names = [name for name in app if not name.startswith("-")]
    if path and (app.default_command is not None or not names):
        yield " ".join(path)
    for name in names:
        yield from commands(app[name], (*path, name))


def test_every_command_has_a_schema():
    """What a command prints is derived from the type that its function returns."""
    assert set(commands(build_app())) - NO_JSON == set(commands_with_json(build_app()))


@pytest.mark.parametrize("command", sorted(commands_with_json(build_app())))
@pytest.mark.slow(reason="derives every schema")
def test_a_schema_is_whole(command, capsys):
    """Each schema is a JSON Schema whose references it contains itself."""
    assert main(["schema", *command.split()]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    named = {part.partition('"')[0] for part in json.dumps(schema).split("#/$defs/")[1:]}
    assert named <= schema["$defs"].keys()


def test_an_unknown_command_is_refused_with_the_nearest(capsys):
    """A slip of the pen gets the name that was meant; no name gets all of them."""
    assert main(["schema", "provider", "sl"]) == 2
    assert "did you mean 'provider ls'" in capsys.readouterr().err
    assert main(["schema"]) == 0
    assert set(capsys.readouterr().out.splitlines()) == set(commands_with_json(build_app()))


def test_the_commands_with_a_schema_are_json_too(capsys):
    """With ``--json`` the names of the commands are one JSON list."""
    assert main(["schema", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == sorted(commands_with_json(build_app()))
