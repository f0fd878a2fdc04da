"""What every command prints with ``--json`` is what `memorybus schema` describes."""

import json
from typing import Any

import jsonschema
import pytest
from helpers.stories.described import closed, command_of, troubles, values
from helpers.stories.everything import COPY, Everything, everything
from helpers.stories.frozen import differences, freeze, write_frozen
from helpers.stories.scenario import NAME
from memorybus_console.cli.app import build_app
from memorybus_console.cli.schema import commands_with_json, schema_of

ELSEWHERE = {
    "demo": "starts a Redis; tests/integration/cli/test_cli.py",
    "key revoke": "needs the id of a key; tests/integration/gateway",
    "hermes setup": "needs a Hermes; tests/hermes/test_command.py",
    "events tail": "prints what `events ls` prints, without an end",
    "provider remove": "needs an instance that is gone; tests/integration/operations/providers",
    "provider setup": "writes a settings file; tests/integration/cli/providers",
    "serve": "runs until it is stopped; tests/integration/web/test_serve_command.py",
    "up": "runs until it is stopped; tests/integration/workers/processes/test_supervisor.py",
    "whatif": "needs a record that is not archived; tests/integration/recall/test_shown_prompts.py",
    "worker": "runs until it is stopped; tests/integration/workers/processes/test_supervisor.py",
}
"""Commands whose output is looked at elsewhere, and why not here."""


def acts(bus: Everything) -> list[tuple[str, ...]]:
    """Return commands that change something, in an order in which they can."""
    out = str(bus.directory / "archive")
    return [
        ("config", "page-token"),
        ("key", "create", "--user", "ann"),
        ("key", "list"),
        ("schema", "status"),
        *curations(bus),
        *amendments(bus),
        ("provider", "move", "holographic"),
        ("archive", "export", out),
        ("archive", "import", out),
        ("dlq", "edit", bus.event, "--provider", NAME, "--file", edit(bus), "--reason", "x"),
        ("dlq", "retry", "--provider", NAME, "--all", "--wait", "30"),
        ("dlq", "discard", "--provider", NAME, "--all", "--reason", "x", "--yes"),
        ("provider", "retry-now", NAME),
        ("provider", "pause", NAME, "--reason", "x"),
        ("status",),
        ("provider", "resume", NAME),
        ("verify", "holographic"),
        ("rebuild", "holographic", "--yes"),
        ("rebuild", "ls"),
        ("rebuild", "--rollback", "holographic"),
        ("rebuild", "--drop", "holographic"),
        ("replay", "--provider", "holographic", "--into", "another", "--yes"),
        ("replay", "--cancel", COPY, "--yes"),
        ("forget", "--user", "default", "--reason", "asked", "--yes"),
        ("hermes", "uninstall", "--home", str(bus.hermes())),
        *(
            (host, act, "--home", str(bus.directory / host))
            for host in ("claude", "codex")
            for act in ("install", "uninstall")
        ),
    ]


def amendments(bus: Everything) -> list[tuple[str, ...]]:
    """Return commands that put right and take back a memory that is kept."""
    words = ("--provider", "holographic")
    said = bus.run("memories", "list", "--user", "default", *words, "--json")
    first = next(one for one in json.loads(said.out)["memories"] if one["event"])
    memory = (first["event"], *words, "--text", first["text"])
    right = ("memories", "correct", memory[0], "It hangs on the hook.", *memory[1:])
    # Nobody serves the copy, so a longer wait for it would end in the same way.
    return [("memories", "delete", *memory), right, (*right, "--yes", "--wait", "1")]


def curations(bus: Everything) -> list[tuple[str, ...]]:
    """Return commands of the curator, about a memory and a run that exist."""
    said = bus.run("memories", "list", "--user", "default", "--provider", "holographic", "--json")
    kept = next(one for one in json.loads(said.out)["memories"] if one["kind"] == "user-store")
    run = json.loads(bus.run("curator", "run", "--json").out)["run"]
    return [
        ("curator", "run", "--dry-run"),
        ("curator", "run"),
        ("curator", "pin", kept["name"]),
        ("curator", "report", "1"),
        ("curator", "unpin", kept["name"]),
        ("curator", "accept", run),
        ("curator", "reject", run),
        ("curator", "undo", run),
        ("curator", "status"),
    ]


def edit(bus: Everything) -> str:
    """Return a file with the fields of another event."""
    path = bus.directory / "new.json"
    path.write_text(json.dumps({"type": "TurnCompleted", "user": "new", "assistant": "ok"}))
    return str(path)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_every_command_prints_what_the_schema_says(
    redis_client, make_settings, tmp_path, spawn, pytestconfig
):
    """Real output of each command validates, names no other field, and equals what is frozen.

    `--write-golden` freezes it again.
    """
    wrong: list[str] = []
    printed: dict[str, list[Any]] = {}
    with everything(redis_client, make_settings, tmp_path, spawn) as bus:
        for words in [*bus.commands(), *acts(bus)]:
            ended, command = bus.run(*words, "--json"), command_of(words)
            wrong += troubles(words, ended.out)
            lines = values(command, ended.out)
            printed.setdefault(command, []).append(freeze(command, words, lines))
    assert not wrong, "\n".join(wrong)
    assert printed.keys() | ELSEWHERE.keys() == commands_with_json(build_app()).keys()
    if pytestconfig.getoption("write_golden"):
        for command, frozen in printed.items():
            write_frozen(command, frozen)
    changed = [line for command in printed for line in differences(command, printed[command])]
    assert not changed, "\n".join(changed)


def test_a_failure_is_what_the_schema_says(make_settings, tmp_path):
    """A command that fails prints the one object that is documented for all."""
    bus = Everything(make_settings(url="redis://127.0.0.1:1/0"), tmp_path, "")
    said = bus.run("status", "--json")
    assert said.code == 1
    jsonschema.validate(
        json.loads(said.out), closed(schema_of(build_app(), "status")["$defs"]["Failed"])
    )
