"""``memorybus tools``: the tools of real providers, listed and called by hand."""

import json
from typing import Any

import pytest
from helpers.making import MakeSettings
from helpers.stories.scenario import worker
from memorybus.config.settings import Settings
from memorybus_console.cli.app import main

WRITES = {
    "memory_search": False,
    "memory_probe": False,
    "memory_related": False,
    "memory_reason": False,
    "memory_contradict": False,
    "memory_list": False,
    "session_search": False,
    "memory_add": True,
    "memory_correct": True,
    "memory_feedback": True,
}


@pytest.fixture(name="settings")
def _settings(redis_url: str, make_settings: MakeSettings) -> Settings:
    return make_settings(url=redis_url, providers=("holographic",))


def run(
    settings: Settings, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0
) -> tuple[Any, str]:
    """Run ``memorybus tools … --json``; return its result and what it said beside."""
    where = ("--url", settings.url, "--namespace", settings.namespace)
    given = main(["tools", *words, *where, "--data-dir", str(settings.data_dir), "--json"])
    said = capsys.readouterr()
    assert given == code, said.err
    return json.loads(said.out), said.err


def test_tools_are_listed_and_called(spawn, settings, capsys):
    """What one call writes the next one finds, within the person's scope and no other's."""
    worker(spawn, settings, jobs=1)
    listed, _ = run(settings, capsys, "ls")
    assert {row["name"]: row["writes"] for row in listed} == WRITES

    fact = '{"content": "The brass key is under the pot.", "tags": ["key"]}'
    added, _ = run(settings, capsys, "call", "memory_add", "--json-args", fact, "--user", "ana")
    asked = ("call", "memory_search", "--arg", "query=brass key", "--arg", "limit=3", "--user")
    found, _ = run(settings, capsys, *asked, "ana")
    other, _ = run(settings, capsys, *asked, "bob")

    assert added["ok"]
    assert [one["text"] for one in found["results"]] == ["The brass key is under the pot."]
    assert other["results"] == []


def test_a_call_that_fails_is_told_with_its_exit_code(spawn, settings, capsys):
    """An unknown tool and wrong arguments are results that say so: exit code 1."""
    assert run(settings, capsys, "ls")[0] == []
    worker(spawn, settings, jobs=1)
    unknown, _ = run(settings, capsys, "call", "memory_burn", code=1)
    wrong, _ = run(settings, capsys, "call", "memory_search", "--arg", "limit=many", code=1)
    assert unknown["error"] == "memory has no tool 'memory_burn'"
    assert "memory_search" in wrong["error"]


def test_tools_are_shown_to_people(spawn, settings, capsys):
    """A table says what reads and what writes; without a worker it says what to start."""
    where = ["--url", settings.url, "--namespace", settings.namespace]
    assert main(["tools", "ls", *where]) == 0
    assert "memorybus up" in capsys.readouterr().err
    worker(spawn, settings)
    assert main(["tools", "ls", *where]) == 0
    shown = capsys.readouterr().out
    assert "memory_search" in shown
    assert "reads" in shown
    assert "writes" in shown
