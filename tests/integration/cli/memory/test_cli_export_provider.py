"""``memorybus export --provider``: what real providers keep, told by their own workers."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.stories.scenario import wait_applied, worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus_console.cli.app import main

pytestmark = pytest.mark.timeout(120)


def exported(settings: Settings, file: Path, *words: str) -> list[dict[str, Any]]:
    """Run ``memorybus export FILE …``; return its lines."""
    where = ("--url", settings.url, "--namespace", settings.namespace)
    assert main(["export", str(file), *words, *where, "--data-dir", str(settings.data_dir)]) == 0
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_what_a_provider_keeps_of_a_person_and_nobody_else(
    redis_url, redis_client, make_settings, spawn, tmp_path, capsys
):
    """Each line is a memory of the person, with the event that brought it; others' stay out."""
    settings = make_settings(url=redis_url, providers=("builtin", "holographic"))
    worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        for user in ("ann", "bob"):
            session = bus.session(f"s-{user}", user=user, warm=False)
            said = session.turn_completed(f"{user} grows quinces", "Noted.", ordinal=0)
            session.memory_written("add", f"{user} sails", store="user")
        assert bus.flush("logged", 10)
    for name in settings.providers:
        wait_applied(redis_client, settings, name)
    kept = exported(settings, tmp_path / "b.jsonl", "--user", "bob", "--provider", "holographic")
    assert {one["user"] for one in kept} == {"bob"}
    assert "bob grows quinces" in {one["text"] for one in kept}
    assert said.event_id in {one.get("event") for one in kept}
    entries = exported(settings, tmp_path / "a.jsonl", "--user", "ann", "--provider", "builtin")
    assert [one["text"] for one in entries] == ["ann sails"]
    both = ("--user", "ann", "--user", "bob", "--agent", "default", "--provider", "builtin")
    assert len(exported(settings, tmp_path / "c.jsonl", *both)) == 2
    capsys.readouterr()
    none = ("--user", "ann", "--provider", "holografic")
    where = ("--url", settings.url, "--namespace", settings.namespace)
    assert main(["export", str(tmp_path / "d"), *none, *where]) == 2
    assert "no instance is called 'holografic'" in capsys.readouterr().err
    assert main(["export", "--user", "a", "--provider", "p", "--since", "2026-01-01"]) == 2
