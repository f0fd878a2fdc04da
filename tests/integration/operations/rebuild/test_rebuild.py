"""Rebuild: a fresh generation beside the live one, filled, compared, swapped, rolled back (G8)."""

import msgspec
import pytest
import redis
from helpers.processes.processes import Spawn
from helpers.providers.recording import effects, texts
from helpers.stories.rebuilding import (
    command,
    damage,
    fill,
    live,
    paused_names,
    ran,
    settled,
    talking,
)
from helpers.stories.scenario import NAME, home, publish, recorded, say, worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.redis.keys import Keys
from memorybus.registry.instances import Instances

POINTS = ("made", "filled", "met", "verified", "swapped", "purged", "ended")


@pytest.mark.fault
@pytest.mark.timeout(300)
def test_a_killed_rebuild_goes_on(redis_client, make_settings, spawn):
    """G8: killed at every point, the same command goes on; nothing is missed, nothing stays paused.

    Recalls are answered all the time, and never by a generation that is not full.
    """
    settings = make_settings(**recorded("Transactional"))
    fill(settings)
    child = worker(spawn, settings, jobs=1)
    with talking(settings) as said:
        for point in POINTS:
            dying = command(spawn, settings, "rebuild", NAME, "--yes", crash_at=f"rebuild.{point}")
            assert dying.wait(60) == -9, dying.output()
            assert len(recalled(spawn, settings, "a remembers")) == 1
        before = live(redis_client, settings)
        done = ran(spawn, settings, "rebuild", NAME, "--yes")
        assert done["live"] != before
        assert done["compared"]["differing"] == 0
    name = live(redis_client, settings)
    settled(redis_client, settings, name)
    kept = paused_names(redis_client, settings)
    assert name not in kept
    assert [text for text in texts(home(settings, name)) if text.startswith("busy")] == said
    assert len(effects(home(settings, name))) == 4 * 21 + len(said)
    assert child.terminate() == 0


def recalled(spawn: Spawn, settings: Settings, question: str) -> list[str]:
    """Return the texts that a person is answered."""
    found = ran(spawn, settings, "recall", question)
    return [one["text"] for one in found["results"] if question in one["text"]]


@pytest.mark.timeout(120)
def test_a_state_that_differs_is_not_swapped_unless_told(redis_client, make_settings, spawn):
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
    assert paused_names(redis_client, settings) == set()
    damage(home(settings), "delete from effects where text = 'b remembers'")
    told = ran(spawn, settings, "verify", NAME, code=1)
    assert '"key": "b"' in told
    assert recalled(spawn, settings, "b remembers") == []
    refused = ran(spawn, settings, "rebuild", NAME, "--yes", code=1)
    assert "b (differs)" in refused
    assert f"continues beside it until memorybus rebuild --drop {NAME}" in refused
    assert (live(redis_client, settings), paused_names(redis_client, settings)) == (NAME, set())
    beside = generation(redis_client, settings)
    shown = ran(spawn, settings, "diff", NAME, beside, "--query", "b", "--query", "c")
    assert [one["same"] for one in shown] == [False, True]
    done = ran(spawn, settings, "rebuild", NAME, "--no-verify", "--yes")
    assert recalled(spawn, settings, "b remembers") == ["b remembers"]
    dropped = ran(spawn, settings, "rebuild", "--drop", NAME, "--yes")
    assert (dropped["dropped"], dropped["live"]) == ([NAME], done["live"])
    assert not home(settings).exists()
    ran(spawn, settings, "rebuild", "--rollback", NAME, "--yes", code=2)
    assert recalled(spawn, settings, "c remembers") == ["c remembers"]
    assert child.terminate() == 0


def generation(client: redis.Redis, settings: Settings) -> str:
    """Return the one copy that is not dropped."""
    found = Instances(client, Keys(settings.namespace)).all().values()
    (one,) = (one for one in found if not one.dropped)
    return one.name


@pytest.mark.timeout(120)
def test_a_poisoned_person_goes_and_the_rest_stays(redis_client, make_settings, spawn):
    """G8: a rebuild without a person holds nothing of them, also later, and all of the others."""
    settings = make_settings(**recorded("Transactional"))
    for user in ("ann", "mallory"):
        with MemoryBus.connect(msgspec.structs.replace(settings, user=user)) as bus:
            say(bus, user, *(f"{user} {number}" for number in range(5)))
            assert bus.flush("logged", 25)
    child = worker(spawn, settings, jobs=1)
    plan = ran(spawn, settings, "rebuild", NAME, "--except-user", "mallory")
    assert (plan["compared"], plan["known"], live(redis_client, settings)) == (False, False, NAME)
    done = ran(spawn, settings, "rebuild", NAME, "--except-user", "mallory", "--yes")
    with MemoryBus.connect(msgspec.structs.replace(settings, user="mallory")) as bus:
        say(bus, "mallory", "mallory again")
        assert bus.flush("logged", 25)
    settled(redis_client, settings, done["live"])
    assert texts(home(settings, done["live"])) == [f"ann {number}" for number in range(5)]
    assert child.terminate() == 0


@pytest.mark.timeout(120)
def test_a_state_of_an_earlier_time_lives_on(redis_client, make_settings, spawn):
    """G8: a rebuild until a moment has what came before it and what came after the rebuild.

    A verification up to a later moment leaves out the same.
    """
    settings = make_settings(partitions=1, **recorded("Transactional"))
    publish(settings, "s", "one", "two", "three")
    child = worker(spawn, settings, jobs=1)
    settled(redis_client, settings, NAME)
    two = next(one.n for one in effects(home(settings)) if one.text == "two")
    assert '"key": "s"' in ran(spawn, settings, "verify", NAME, "--until", f"p00:{two}", code=1)
    done = ran(spawn, settings, "rebuild", NAME, "--until", f"p00:{two}", "--yes")
    publish(settings, "later", "four")
    settled(redis_client, settings, done["live"])
    assert texts(home(settings, done["live"])) == ["one", "two", "four"]
    last = effects(home(settings, done["live"]))[-1].n
    assert ran(spawn, settings, "verify", NAME, "--until", f"p00:{last}")["ok"]
    assert child.terminate() == 0
