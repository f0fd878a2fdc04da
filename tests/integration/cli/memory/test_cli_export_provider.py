"""``memorybus export --provider``: what real providers keep, told by their own workers."""

import json

import pytest

pytestmark = pytest.mark.timeout(120)


def exported(world, file, *words):
    """Run ``memorybus export FILE …``; return its lines."""
    assert world.run("export", str(file), *words).returncode == 0
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_what_a_provider_keeps_of_a_person_and_nobody_else(make_world, tmp_path):
    """Each line is a memory of the person, with the event that brought it; others' stay out."""
    world = make_world(providers=("builtin", "holographic"))
    world.worker()
    with world.bus() as bus:
        for user in ("ann", "bob"):
            session = bus.session(f"s-{user}", user=user, warm=False)
            said = session.turn_completed(f"{user} grows quinces", "Noted.", ordinal=0)
            session.memory_written("add", f"{user} sails", store="user")
        assert bus.flush("logged", 10)
    world.wait_applied()
    kept = exported(world, tmp_path / "b.jsonl", "--user", "bob", "--provider", "holographic")
    assert {one["user"] for one in kept} == {"bob"}
    assert "bob grows quinces" in {one["text"] for one in kept}
    assert said.event_id in {one.get("event") for one in kept}
    entries = exported(world, tmp_path / "a.jsonl", "--user", "ann", "--provider", "builtin")
    assert [one["text"] for one in entries] == ["ann sails"]
    both = ("--user", "ann", "--user", "bob", "--agent", "default", "--provider", "builtin")
    assert len(exported(world, tmp_path / "c.jsonl", *both)) == 2
    none = world.run("export", str(tmp_path / "d"), "--user", "ann", "--provider", "holografic")
    assert none.returncode == 2
    assert "no instance is called 'holografic'" in none.stderr
    since = ("--user", "a", "--provider", "p", "--since", "2026-01-01")
    assert world.run("export", *since).returncode == 2
