"""``memorybus forget``: somebody is erased wherever it can be reached, and nobody else is."""

import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.providers.recording import texts
from helpers.stories.published import envelopes
from helpers.stories.scenario import home, recorded
from helpers.stories.world import World
from memorybus.archive.location import archive_of
from memorybus.health.monitor import read_status
from memorybus.processes import commands
from memorybus.query.query import Query

pytestmark = pytest.mark.timeout(120)

SECRET = "wolpertinger"
BOTH = ("builtin", "holographic")
QUICK: dict[str, Any] = {"seal_after": 0.05, "partitions": 2, "recall_timeout": 20.0}


def spoken(world, user, *said):
    """Publish turns of a person."""
    with world.bus() as bus:
        session = bus.session(f"s-{user}", user=user, warm=False)
        for number, text in enumerate(said):
            session.turn_completed(text, "Noted.", ordinal=number)
            session.memory_written("add", text, store="user")
        assert bus.flush("logged", 10)


def recalled(world, user):
    """Ask as a person's session; return the key of what is warm then."""
    with world.bus() as bus:
        session = bus.session(f"s-{user}", user=user, warm=False)
        assert SECRET in session.prefetch(f"Where is the {SECRET}?", wait=20)
    return world.keys.warm(session.slot)


def people(world):
    """Return whose events the history shows."""
    return [envelope.scope.user for envelope in envelopes(world.settings)]


def in_redis(world):
    """Return the keys in which a text lies."""
    client = world.redis
    client.config_set("rdbcompression", "no")  # a dump would hide a text that it compresses
    keys: list[Any] = list(client.scan_iter(f"{world.settings.namespace}:*"))
    return {key.decode() for key in keys if SECRET.encode() in (client.dump(key) or b"")}


def forget(world, *words, code=0):
    """Run ``memorybus forget`` for Ann; return its result."""
    return world.result("forget", "--user", "ann", *words, code=code)


def test_a_person_is_erased_everywhere_and_nobody_else(make_world):
    """History, log, providers and their files have nothing of the person; the other's stays."""
    world = make_world(providers=BOTH, **QUICK)
    child = world.worker()
    spoken(world, "ann", f"I saw a {SECRET}.", "And a quince.")
    spoken(world, "bob", "I saw a pear.")
    world.wait_applied()
    assert recalled(world, "ann") in in_redis(world)
    plan = forget(world)
    assert (plan["executed"], plan["events"], plan["sessions"]) == (False, 6, 1)

    done = forget(world, "--yes", "--reason", "she asked")

    assert (done["problems"], done["log"]["unsealed"]) == ([], 0)
    assert {one["name"]: one["problem"] for one in done["instances"]} == dict.fromkeys(BOTH, "")
    assert sum(one["erased"] for one in done["instances"]) >= 6
    assert set(people(world)) == {"bob", "operators"}
    assert not in_redis(world)
    files = [path for path in (world.settings.data_dir / "providers").rglob("*") if path.is_file()]
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    assert any(b"pear" in path.read_bytes() for path in files)
    spoken(world, "ann", "I am back.")
    world.wait_applied()
    assert world.run("verify", "holographic").returncode == 0
    assert people(world).count("ann") == 2
    assert [one for one in read_status(world.settings).alarms if "gone" in str(one)] == []
    assert "DATA LOSS" not in child.output()


def test_what_others_were_shown_goes_and_files_are_rewritten(make_redis, make_settings, spawn):
    """What a person's session wrote to the agent's store is erased for all; what remains is named.

    It is nowhere in Redis, in its files, or in this host's notes and spools.
    """
    server, written = make_redis(appendonly="yes"), f"A {SECRET} lives in the garden.".encode()
    settings = make_settings(url=server.url, providers=BOTH, spool_keep=5.0, **QUICK)
    world = World(settings, server.client(), spawn)
    world.worker()
    keys = world.keys
    with world.bus() as bus:
        hers = bus.session("s-ann", user="ann", warm=False)
        hers.memory_written("add", written.decode())
        assert bus.flush("logged", 10)
        assert written in file_bytes(settings.spool_dir, "*.db*")  # for `spool_keep` from now on
        world.wait_applied()
        his = bus.session("s-bob", user="bob", warm=False)
        assert SECRET in his.prefetch(f"Where does the {SECRET} live?", wait=20)
        bus.sessions.keep_prompt(his.scope, "s-bob", f"There is a {SECRET}.", 1)
        world.redis.hset(keys.reply(0, "ab" * 16), "builtin", f"a {SECRET}")
        world.redis.expire(keys.reply(0, "ab" * 16), 60)
    assert {keys.warm(his.slot), keys.reply(0, "ab" * 16)} <= in_redis(world)
    assert written in file_bytes(server.directory, "*.aof")

    assert forget(world, "--yes", "--reason", "she asked")["problems"] == []

    assert not list(settings.spool_dir.glob("*.db"))
    assert written not in file_bytes(server.directory, "*.aof")
    assert SECRET.encode() not in file_bytes(settings.data_dir, "sessions.db*")
    assert not in_redis(world) - {keys.want(his.slot)}  # his own question
    with world.bus() as bus:
        scope = bus.session("s-bob", user="bob", warm=False).scope
        assert bus.sessions.prompt(scope, "s-bob", 2) is None


def file_bytes(directory: Path, names: str) -> bytes:
    """Return all that is in some files of a directory."""
    return b"".join(path.read_bytes() for path in directory.rglob(names))


def test_a_spool_that_is_in_use_is_named(make_world):
    """The spool of a process that runs is not touched, and is named with what to do."""
    world = make_world(providers=BOTH, **QUICK)
    with world.bus() as bus:
        bus.session("s-ann", user="ann", warm=False).turn_completed("I am here.", "Good.")
        [spool] = world.settings.spool_dir.glob("*.db")  # as yet there is no other's
        assert bus.flush("logged", 10)
        world.worker()
        done = forget(world, "--yes", "--reason", "she asked")
    assert [what for what in done["remains"] if str(spool) in what and "run this again" in what]


def test_what_is_not_erased_yet_is_told_and_the_second_run_ends_it(make_world):
    """Without a worker history is hidden and the providers are named; with one the rest is done."""
    world = make_world(providers=BOTH, **QUICK)
    child = world.worker()
    spoken(world, "ann", f"I saw a {SECRET}.")
    world.wait_applied()
    child.terminate()

    done = forget(world, "--yes", "--wait", "1", code=1)
    assert all("no live worker" in one["problem"] for one in done["instances"])
    assert people(world) == ["operators"]

    world.worker()
    done = forget(world, "--yes")
    assert (done["tombstone"], done["events"]) == ("", 0)
    assert all(one["erased"] for one in done["instances"])


def test_a_provider_that_cannot_erase_is_named(make_world):
    """A provider without `forgets` keeps what it has, and the exit code says that this is so."""
    world = make_world(**recorded("Keyed"), **QUICK)
    world.worker()
    spoken(world, "ann", f"I saw a {SECRET}.")
    world.wait_applied()
    done = forget(world, "--yes", "--wait", "1", code=1)
    assert ["no way to erase" in one["problem"] for one in done["instances"]] == [True]
    assert texts(home(world.settings))


def test_dead_letters_go(make_world):
    """What a provider refused of the person is discarded, and their key is free again."""
    world = make_world(**recorded("Keyed"), **QUICK)
    world.worker()
    spoken(world, "ann", f"!permanent {SECRET}")
    spoken(world, "bob", "!permanent pear")
    world.wait_applied()
    done = forget(world, "--yes", "--wait", "10", code=1)
    assert done["letters"] >= 1
    partitions = range(world.settings.partitions)
    assert sum(world.redis.xlen(world.keys.dead(p, "rec")) for p in partitions) >= 1, "bob's stay"
    assert not in_redis(world)


def test_an_archiver_that_is_killed_is_a_problem(make_world, monkeypatch):
    """The rest is erased, the log keeps the entries, and the next run has to end it."""
    world = make_world(providers=(), **QUICK)
    spoken(world, "ann", SECRET)
    killed = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    monkeypatch.setattr(commands, "module_command", lambda *_: killed)
    (problem,) = forget(world, "--yes", "--wait", "1", code=1)["problems"]
    assert "may still have the bytes" in problem
    assert "exit code -9" in problem
    assert in_redis(world)


def test_nobody_is_everybody(make_world):
    """Without a name nothing is erased: a mistake must not erase everybody."""
    assert make_world().run("forget", "--yes").returncode == 2


def test_the_tombstone_has_an_end(make_world):
    """What happened before is hidden, though it comes later; what happens afterwards is not."""
    world = make_world(providers=(), **QUICK)
    spoken(world, "ann", "before")
    world.run("forget", "--user", "ann", "--yes", "--wait", "1")
    archive = archive_of(world.redis, world.settings)
    assert archive is not None
    (tombstone,) = archive.tombstones()
    assert tombstone.query == Query(users=("ann",), upto=tombstone.query.upto)
    assert tombstone.query.upto >= tombstone.at > 0
