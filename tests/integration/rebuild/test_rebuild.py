"""Rebuild: a fresh generation beside the live one, filled, compared, swapped, rolled back (G8)."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis
from conftest import MakeSettings
from helpers.processes.processes import Child, Spawn
from helpers.providers.recording import effects, texts
from helpers.stories.scenario import NAME, environ, home, recorded, say, wait_applied, worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.redis.keys import Keys
from memorybus.registry.instances import Instances, live_name

NEXT = f"{NAME}@1"


def command(spawn: Spawn, settings: Settings, *words: str, **changed: Any) -> Child:
    """Start a command of the command line."""
    told = msgspec.structs.replace(settings, **changed)
    return spawn("-m", "memorybus", *words, "--json", env=environ(told))


def ran(spawn: Spawn, settings: Settings, *words: str, code: int = 0) -> Any:
    """Run a command to its end; return its result."""
    return result(command(spawn, settings, *words), code)


def result(child: Child, code: int = 0) -> Any:
    """Wait for a command's end; return its result, or all that it said if it fails."""
    assert child.wait(60) == code, child.output()
    text = child.output()
    begins = min(at for at in (text.find("{"), text.find("["), len(text)) if at >= 0)
    return msgspec.json.decode(text[begins:]) if code == 0 else text


def fill(settings: Settings, sessions: str = "abcd", count: int = 20) -> None:
    """Publish turns and writes of several sessions."""
    with MemoryBus.connect(settings) as bus:
        for name in sessions:
            session = bus.session(name, warm=False)
            for number in range(count):
                session.turn_completed(f"{name} {number}", "ok", ordinal=number)
            session.memory_written("add", f"{name} remembers", store="user")
        assert bus.flush("logged", 25)


def live(client: redis.Redis, settings: Settings) -> str:
    """Return the instance that serves."""
    return live_name(NAME, Instances(client, Keys(settings.namespace)).live())


def held(client: redis.Redis, settings: Settings) -> set[str]:
    """Return the instances that stand still."""
    return set(Instances(client, Keys(settings.namespace)).pauses())


def settled(client: redis.Redis, settings: Settings, name: str) -> None:
    """Wait until an instance has everything."""
    wait_applied(client, settings, name, 30)


@contextmanager
def talking(settings: Settings, session: str = "busy", pause: float = 0.01) -> Iterator[list[str]]:
    """Publish turns of a session all the time; the list holds what was accepted."""
    said: list[str] = []
    stop = threading.Event()

    def talk() -> None:
        with MemoryBus.connect(settings) as bus:
            speaker = bus.session(session, warm=False)
            while not stop.wait(pause):
                text = f"{session} says {len(said)}"
                speaker.turn_completed(text, "ok", ordinal=len(said))
                said.append(text)
            assert bus.flush("logged", 25)

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    try:
        yield said
    finally:
        stop.set()
        thread.join(40)


POINTS = ("made", "filled", "met", "verified", "swapped", "purged", "ended")


@pytest.mark.fault
@pytest.mark.timeout(300)
def test_a_killed_rebuild_goes_on(
    redis_client: redis.Redis, make_settings: MakeSettings, spawn: Spawn
) -> None:
    """G8: killed at every point, the same command goes on; nothing is missed, nothing stays held.

    Recalls are answered all the time, and never by a generation that is not full.
    """
    settings = make_settings(**recorded("Transactional"))
    fill(settings)
    child = worker(spawn, settings, jobs=1)
    with talking(settings) as said:
        for point in POINTS:
            dying = command(
                spawn, settings, "rebuild", NAME, "--execute", crash_at=f"rebuild.{point}"
            )
            assert dying.wait(60) == -9, dying.output()
            assert len(recalled(spawn, settings, "a remembers")) == 1
        before = live(redis_client, settings)
        done = ran(spawn, settings, "rebuild", NAME, "--execute")
        assert done["live"] != before
        assert done["compared"]["differing"] == 0
    name = live(redis_client, settings)
    settled(redis_client, settings, name)
    kept = held(redis_client, settings)
    assert name not in kept
    assert [text for text in texts(home(settings, name)) if text.startswith("busy")] == said
    assert len(effects(home(settings, name))) == 4 * 21 + len(said)
    assert child.terminate() == 0


def recalled(spawn: Spawn, settings: Settings, question: str) -> list[str]:
    """Return the texts that a person is answered."""
    found = ran(spawn, settings, "recall", question)
    return [one["text"] for one in found["results"] if question in one["text"]]


@pytest.mark.timeout(120)
def test_a_state_that_differs_is_not_swapped_unless_told(
    redis_client: redis.Redis, make_settings: MakeSettings, spawn: Spawn
) -> None:
    """G8: a damaged live state is named by verify and rebuild, and mended by --no-verify.

    Recalls follow. The copy of the verification goes; the generation before is dropped with its
    state.
    """
    settings = make_settings(**recorded("Transactional"))
    fill(settings, count=5)
    child = worker(spawn, settings, jobs=1)
    settled(redis_client, settings, NAME)
    same = ran(spawn, settings, "verify", NAME)
    assert (same["ok"], same["compared"]["keys"]) == (True, 4)
    assert held(redis_client, settings) == set()
    damage(home(settings), "delete from effects where text = 'b remembers'")
    told = ran(spawn, settings, "verify", NAME, code=1)
    assert '"key": "b"' in told
    assert recalled(spawn, settings, "b remembers") == []
    refused = ran(spawn, settings, "rebuild", NAME, "--execute", code=1)
    assert "b (differs)" in refused
    assert f"goes on beside it until memorybus rebuild --drop {NAME}" in refused
    assert (live(redis_client, settings), held(redis_client, settings)) == (NAME, set())
    beside = generation(redis_client, settings)
    shown = ran(spawn, settings, "diff", NAME, beside, "--query", "b", "--query", "c")
    assert [one["same"] for one in shown] == [False, True]
    done = ran(spawn, settings, "rebuild", NAME, "--no-verify", "--execute")
    assert recalled(spawn, settings, "b remembers") == ["b remembers"]
    dropped = ran(spawn, settings, "rebuild", "--drop", NAME, "--execute")
    assert (dropped["dropped"], dropped["live"]) == ([NAME], done["live"])
    assert not home(settings).exists()
    ran(spawn, settings, "rebuild", "--rollback", NAME, "--execute", code=2)
    assert recalled(spawn, settings, "c remembers") == ["c remembers"]
    assert child.terminate() == 0


def generation(client: redis.Redis, settings: Settings) -> str:
    """Return the one copy that is not dropped."""
    found = Instances(client, Keys(settings.namespace)).all().values()
    (one,) = (one for one in found if not one.dropped)
    return one.name


def damage(where: Path, statement: str) -> None:
    """Change a recorder's state behind its back."""
    with closing(sqlite3.connect(where / "effects.db", isolation_level=None)) as db:
        db.execute("pragma busy_timeout = 5000")
        db.execute(statement)


@pytest.mark.timeout(120)
def test_a_poisoned_person_goes_and_the_rest_stays(
    redis_client: redis.Redis, make_settings: MakeSettings, spawn: Spawn
) -> None:
    """G8: a rebuild without a person holds nothing of them, also later, and all of the others."""
    settings = make_settings(**recorded("Transactional"))
    for user in ("ann", "mallory"):
        with MemoryBus.connect(msgspec.structs.replace(settings, user=user)) as bus:
            say(bus, user, *(f"{user} {number}" for number in range(5)))
            assert bus.flush("logged", 25)
    child = worker(spawn, settings, jobs=1)
    plan = ran(spawn, settings, "rebuild", NAME, "--except-user", "mallory")
    assert (plan["compared"], plan["known"], live(redis_client, settings)) == (False, False, NAME)
    assert plan["counted"]["left_out"] == {"except_user": 6}
    assert plan["counted"]["events"] == 6
    done = ran(spawn, settings, "rebuild", NAME, "--except-user", "mallory", "--execute")
    with MemoryBus.connect(msgspec.structs.replace(settings, user="mallory")) as bus:
        say(bus, "mallory", "mallory again")
        assert bus.flush("logged", 25)
    settled(redis_client, settings, done["live"])
    assert texts(home(settings, done["live"])) == [f"ann {number}" for number in range(5)]
    assert child.terminate() == 0


@pytest.mark.timeout(120)
def test_a_state_of_an_earlier_time_lives_on(
    redis_client: redis.Redis, make_settings: MakeSettings, spawn: Spawn
) -> None:
    """G8: a rebuild until a moment has what came before it and what came after the rebuild.

    A verification up to a later moment leaves out the same.
    """
    settings = make_settings(partitions=1, **recorded("Transactional"))
    with MemoryBus.connect(settings) as bus:
        say(bus, "s", "one", "two", "three")
        assert bus.flush("logged", 25)
    child = worker(spawn, settings, jobs=1)
    settled(redis_client, settings, NAME)
    two = next(one.n for one in effects(home(settings)) if one.text == "two")
    assert '"key": "s"' in ran(spawn, settings, "verify", NAME, "--until", f"p00:{two}", code=1)
    done = ran(spawn, settings, "rebuild", NAME, "--until", f"p00:{two}", "--execute")
    with MemoryBus.connect(settings) as bus:
        say(bus, "later", "four")
        assert bus.flush("logged", 25)
    settled(redis_client, settings, done["live"])
    assert texts(home(settings, done["live"])) == ["one", "two", "four"]
    last = effects(home(settings, done["live"]))[-1].n
    assert ran(spawn, settings, "verify", NAME, "--until", f"p00:{last}")["ok"]
    assert child.terminate() == 0
