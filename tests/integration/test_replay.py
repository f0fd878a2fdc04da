"""Replay: the log into a fresh instance, as the live one became."""

import signal
from typing import Any

import msgspec
import pytest
import redis
from conftest import MakeSettings
from helpers.processes import Child, Spawn
from helpers.recording import calls, state_digest, texts
from helpers.scenario import environ, home, recorded, thread_worker, wait_applied
from helpers.servers import RedisServer
from helpers.waiting import wait_until
from memorybus.client import MemoryBus
from memorybus.errors import ConfigError
from memorybus.settings import Settings
from memorybus_workers.replay import Finished, Progress, Replay


def fill(settings: Settings, count: int = 40) -> None:
    """Publish turns and writes of several sessions."""
    with MemoryBus.connect(settings) as bus:
        for name in ("a", "b", "c", "d"):
            session = bus.session(name, warm=False)
            for number in range(count):
                session.turn_completed(f"{name} {number}", "ok", ordinal=number)
            session.memory_written("add", f"{name} remembers", store="user")
        assert bus.flush("logged", 15)


def replay(spawn: Spawn, settings: Settings, into: str) -> Child:
    """Start a replay process."""
    words = ("-m", "memorybus_workers", "replay", "--provider", "rec", "--into", into)
    return spawn(*words, env=environ(settings))


def lines(child: Child) -> list[dict[str, Any]]:
    """Return what a replay printed."""
    printed = (line for line in child.output().splitlines() if line.startswith('{"'))
    return [msgspec.json.decode(line) for line in printed if '"level"' not in line]


def wait_leases_ended(client: redis.Redis, settings: Settings) -> None:
    """Wait until nobody owns a lane of the copy."""
    leases = f"{settings.namespace}:*:lease:copy"
    wait_until(lambda: not list(client.scan_iter(leases)), "its leases have ended")


@pytest.mark.parametrize("kind", ["Transactional", "Keyed"])
def test_a_replay_equals_the_live_state(
    redis_client: redis.Redis, make_settings: MakeSettings, kind: str
) -> None:
    """G8: the log replayed into a fresh instance gives the digest of the live one."""
    settings = make_settings(batch=16, **recorded(kind))
    fill(settings)
    with thread_worker(settings):
        wait_applied(redis_client, settings)
    told: list[Progress | Finished] = []
    result = Replay(settings, "rec", "copy", told.append).run()
    assert result.finished
    assert (result.applied, result.parked) == (4 * 42, 0)
    assert told[-1] == Progress(168, 168)
    assert state_digest(home(settings, "copy")) == state_digest(home(settings))
    assert len(texts(home(settings, "copy"))) == 4 * 41


def test_the_real_providers_are_equal_too(
    redis_client: redis.Redis, make_settings: MakeSettings
) -> None:
    """G8: MEMORY.md and USER.md after a replay are byte for byte the live ones."""
    settings = make_settings(providers=("builtin",))
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        for number in range(20):
            session.memory_written("add", f"note {number} of the garden")
        session.memory_written("replace", "a better note", old_text="note 7 of")
        session.memory_written("remove", old_text="note 3 of")
        session.memory_written("add", "Ann likes roses", store="user")
        assert bus.flush()
    with thread_worker(settings):
        wait_applied(redis_client, settings, "builtin")
    assert Replay(settings, "builtin", "copy", lambda _: None).run().finished
    live, copy = settings.provider_home("builtin"), settings.provider_home("copy")
    files = sorted(path.relative_to(live) for path in live.rglob("*.md"))
    assert len(files) == 2
    for file in files:
        assert (copy / file).read_bytes() == (live / file).read_bytes()


def test_an_interrupted_replay_goes_on(
    redis_client: redis.Redis, make_settings: MakeSettings, spawn: Spawn
) -> None:
    """G8: a replay that was killed, then told to end, goes on where it was and doubles nothing."""
    settings = make_settings(lease=1.0, call_timeout=0.5, batch=5, **recorded("Transactional"))
    fill(settings, 400)
    for how in (signal.SIGKILL, signal.SIGTERM):
        child = replay(spawn, settings, "copy")
        before = len(texts(home(settings, "copy")))
        wait_until(
            lambda before=before: len(texts(home(settings, "copy"))) > before + 50, "it fills", 20
        )
        child.send(how)
        code = child.wait()
        if how is signal.SIGTERM:
            assert code == 1
            assert lines(child)[-1]["finished"] is False
        else:
            wait_leases_ended(redis_client, settings)
    child = replay(spawn, settings, "copy")
    assert child.wait() == 0, child.output()
    last = lines(child)[-1]
    assert (last["finished"], last["applied"]) == (True, 4 * 402)
    with thread_worker(settings):
        wait_applied(redis_client, settings)
    assert state_digest(home(settings, "copy")) == state_digest(home(settings))
    assert len(texts(home(settings, "copy"))) == 4 * 401


def test_a_replay_survives_the_loss_of_its_leases(
    redis_client: redis.Redis, make_settings: MakeSettings, spawn: Spawn
) -> None:
    """G5: a replay frozen over its leases takes its lanes again and comes to its end."""
    settings = make_settings(lease=1.0, call_timeout=0.5, batch=5, **recorded("Transactional"))
    fill(settings, 400)
    child = replay(spawn, settings, "copy")
    wait_until(lambda: len(texts(home(settings, "copy"))) > 50, "it fills", 20)
    child.freeze()
    wait_leases_ended(redis_client, settings)
    child.thaw()
    assert child.wait(20) == 0, child.output()
    assert len(texts(home(settings, "copy"))) == 4 * 401


def test_replay_refuses_a_live_target(
    redis_server: RedisServer, make_settings: MakeSettings
) -> None:
    """G8: a replay never goes into a live instance, nor to a name that is none."""
    settings = make_settings(**recorded("Transactional"))
    for wrong in ("rec", "", "../x", "a b"):
        with pytest.raises(ConfigError):
            Replay(settings, "rec", wrong, lambda _: None)


def test_two_replays_into_one_target_are_refused(
    redis_client: redis.Redis, make_settings: MakeSettings, tmp_path: Any, spawn: Spawn
) -> None:
    """G5: a target that another replay fills now is not touched."""
    flag = tmp_path / "flag"
    flag.touch()
    settings = make_settings(call_timeout=1.9, **recorded("Keyed"))
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed(f"!hang={flag} slow", "ok")
        assert bus.flush()
    child = replay(spawn, settings, "copy")
    wait_until(lambda: calls(home(settings, "copy")), "the first is at work", 15)
    with pytest.raises(ConfigError, match="another replay"):
        Replay(settings, "rec", "copy", lambda _: None).run()
    flag.unlink()
    assert child.wait() == 0, child.output()
    assert len(texts(home(settings, "copy"))) == 1


def test_poison_is_parked_in_the_copy_too(
    redis_client: redis.Redis, make_settings: MakeSettings
) -> None:
    """G6: a replay parks what the provider refuses, in the target's own lane, and ends."""
    settings = make_settings(**recorded("Transactional"))
    with MemoryBus.connect(settings) as bus:
        bus.session("bad", warm=False).turn_completed("!permanent", "")
        bus.session("good", warm=False).turn_completed("fine", "")
        assert bus.flush()
    result = Replay(settings, "rec", "copy", lambda _: None).run()
    assert (result.finished, result.applied, result.parked) == (True, 3, 1)
    assert texts(home(settings, "copy")) == ["fine"]
    assert not list(redis_client.scan_iter("*dead:rec"))
