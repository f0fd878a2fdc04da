"""What every command prints with ``--json`` is what docs/cli.schema.json says."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.processes import Spawn
from helpers.stories.everything import COPY, Everything, everything
from helpers.stories.scenario import NAME
from memorybus.surfaces.cli.results import RESULTS

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/cli.schema.json").read_text())

ELSEWHERE = {
    "demo": "starts a Redis; its fields are a subset of DemoResult",
    "events tail": "prints what `events ls` prints, without an end",
    "notify test": "needs a webhook; tests/integration of notices",
    "provider add": "writes a settings file; tests/integration/registry",
    "provider remove": "writes a settings file; tests/integration/registry",
    "provider setup": "writes a settings file; tests/integration/cli/test_cli_setup",
    "serve": "runs until it is stopped",
    "up": "runs until it is stopped",
    "worker": "runs until it is stopped",
}
"""Commands whose output is looked at elsewhere, and why not here."""


def closed(schema: Any) -> Any:
    """Return a schema that allows no field which it does not name."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {name: closed(one) for name, one in schema.items()}
    is_object = found.get("type") == "object" and "properties" in found
    return {"additionalProperties": False} | found if is_object else found


def command_of(words: tuple[str, ...]) -> str:
    """Return the name of a command in the schema."""
    return next(name for name in (" ".join(words[:2]), words[0]) if name in RESULTS)


def troubles(words: tuple[str, ...], out: str) -> Iterator[str]:
    """Yield what is wrong with what a command printed."""
    name = command_of(words)
    schema = closed({**SCHEMA["commands"][name], "$defs": SCHEMA["$defs"]})
    for value in values(out, lines=RESULTS[name].lines):
        if isinstance(value, dict) and value.keys() <= {"error", "message", "next"}:
            yield f"{words}: it failed: {value}"
            continue
        for error in jsonschema.Draft202012Validator(schema).iter_errors(value):
            yield f"{words}: {error.message[:300]} at {list(error.absolute_path)}"


def values(out: str, *, lines: bool) -> list[Any]:
    """Return the JSON values of an output."""
    try:
        return [json.loads(out)]
    except json.JSONDecodeError:
        if not lines:
            raise
        return [json.loads(line) for line in out.splitlines()]


def acts(bus: Everything) -> list[tuple[str, ...]]:
    """Return commands that change something, in an order in which they can."""
    out = str(bus.directory / "archive")
    return [
        ("config", "page-token"),
        ("provider", "move", "holographic"),
        ("archive", "repair"),
        ("archive", "export", out),
        ("archive", "import", out),
        ("dlq", "edit", bus.event, "--provider", NAME, "--file", edit(bus), "--reason", "x"),
        ("dlq", "retry", "--provider", NAME, "--all", "--execute", "--wait", "30"),
        ("dlq", "discard", "--provider", NAME, "--all", "--reason", "x", "--execute"),
        ("provider", "set", NAME, "concurrency=3", "--execute"),
        ("provider", "retry-now", NAME, "--execute"),
        ("provider", "pause", NAME, "--reason", "x", "--execute"),
        ("status",),
        ("provider", "resume", NAME, "--execute"),
        ("verify", "holographic"),
        ("rebuild", "holographic", "--execute"),
        ("rebuild", "ls"),
        ("rebuild", "--rollback", "holographic"),
        ("rebuild", "--drop", "holographic"),
        ("replay", "--provider", "holographic", "--into", "another", "--execute"),
        ("replay", "--cancel", COPY, "--execute"),
        ("forget", "--user", "default", "--reason", "asked", "--yes"),
        ("hermes", "uninstall", "--home", str(bus.hermes())),
    ]


def edit(bus: Everything) -> str:
    """Return a file with the fields of another event."""
    path = bus.directory / "new.json"
    path.write_text(json.dumps({"type": "TurnCompleted", "user": "new", "assistant": "ok"}))
    return str(path)


@pytest.mark.timeout(400)
def test_every_command_prints_what_the_schema_says(
    redis_client: redis.Redis, make_settings: MakeSettings, tmp_path: Path, spawn: Spawn
) -> None:
    """Real output of each command validates, and has no field that the schema does not name."""
    wrong: list[str] = []
    shown: set[str] = set()
    with everything(redis_client, make_settings, tmp_path, spawn) as bus:
        for words in [*bus.commands(), *acts(bus)]:
            said = bus.run(*words, "--json")
            found = list(troubles(words, said.out))
            wrong += found
            shown |= set() if found else {command_of(words)}
    assert not wrong, "\n".join(wrong)
    assert shown | ELSEWHERE.keys() == RESULTS.keys()


def test_a_failure_is_what_the_schema_says(make_settings: MakeSettings, tmp_path: Path) -> None:
    """A command that fails prints the one object that is documented for all."""
    bus = Everything(make_settings(url="redis://127.0.0.1:1/0"), tmp_path, "")
    said = bus.run("status", "--json")
    assert said.code == 1
    jsonschema.validate(
        json.loads(said.out), closed({**SCHEMA["failed"], "$defs": SCHEMA["$defs"]})
    )
