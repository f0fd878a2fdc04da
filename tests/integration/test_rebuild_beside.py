"""A rebuild beside what goes on: replies, warm results, other commands, backends of other kinds."""

import msgspec
import pytest
import redis
from conftest import MakeSettings
from helpers.processes import Spawn
from helpers.scenario import NAME, home, recorded, say, worker
from helpers.waiting import wait_until
from memorybus.client import MemoryBus
from memorybus.instances import Hold, Instances
from memorybus.keys import Keys
from memorybus.rebuild_lock import RebuildLock, RebuildRuns, at_work
from memorybus.surfaces.check_rebuilds import rebuilds
from memorybus.surfaces.generations import held_reason
from test_rebuild import command, damage, fill, live, ran, settled

MESSAGES = ({"role": "user", "content": "walnut"}, {"role": "assistant", "content": "ok"})


@pytest.mark.timeout(120)
def test_every_compression_is_answered_through_the_swap(
    redis_client: redis.Redis, make_settings: MakeSettings, spawn: Spawn
) -> None:
    """G8: who asks before, during and after the swap is answered, in the provider's own name."""
    table = {"kind": "helpers.tooling:NotingOnce"}
    settings = make_settings(providers=(NAME,), provider={NAME: table})
    fill(settings, "ab", 5)
    child = worker(spawn, settings, jobs=1)
    rebuild = command(spawn, settings, "rebuild", NAME, "--no-verify", "--execute")
    answers: list[str] = []
    with MemoryBus.connect(settings) as bus:
        while rebuild.alive or len(answers) < 3:
            session = bus.session(f"s{len(answers)}", warm=False)
            answers.append(session.contributions(MESSAGES, timeout=30.0))
    assert rebuild.wait() == 0, rebuild.output()
    assert live(redis_client, settings) == f"{NAME}@1"
    assert set(answers) == {f"From {NAME}:\nkept 2 {{lt}}messages{{gt}}"}
    assert child.terminate() == 0


@pytest.mark.timeout(120)
def test_warm_results_of_before_are_asked_for_anew(
    redis_client: redis.Redis, make_settings: MakeSettings, spawn: Spawn
) -> None:
    """G8: what was warm of a poisoned state goes with it; the session is warm again by itself."""
    settings = make_settings(**recorded("Transactional"))
    for user in ("ann", "mallory"):
        with MemoryBus.connect(msgspec.structs.replace(settings, user=user)) as bus:
            say(bus, f"of-{user}", f"walnut {user}")
            assert bus.flush("logged", 15)
    child = worker(spawn, settings, jobs=1)
    settled(redis_client, settings, NAME)
    damage(home(settings), "update effects set user = 'ann'")  # somebody got into ann's memory
    with MemoryBus.connect(msgspec.structs.replace(settings, user="ann")) as bus:
        session = bus.session("asks")
        session.queue_prefetch("walnut")
        wait_until(lambda: "mallory" in session.prefetch("walnut"), "the poison is warm")
        words = ("rebuild", NAME, "--except-user", "mallory", "--execute")
        done = ran(spawn, settings, *words)
        assert done["purged"] >= 1
        assert "mallory" not in session.prefetch("walnut")
        wait_until(lambda: "walnut ann" in session.prefetch("walnut"), "it is warm again", 20)
    assert child.terminate() == 0


@pytest.mark.timeout(120)
def test_a_backend_without_a_digest_is_asked_for_events(
    redis_client: redis.Redis, make_settings: MakeSettings, spawn: Spawn
) -> None:
    """G8: of a lookup provider verify counts what is not there; of others it says it cannot."""
    settings = make_settings(**recorded("Lookup", digest=False))
    fill(settings, "ab", 5)
    child = worker(spawn, settings, jobs=1)
    settled(redis_client, settings, NAME)
    found = ran(spawn, settings, "verify", NAME)
    assert (found["ok"], found["how"], found["asked"]) == (True, "events", 12)
    assert ran(spawn, settings, "verify", NAME, "--sample", "3")["asked"] <= 4
    damage(home(settings), "delete from effects where text = 'b 3'")
    told = ran(spawn, settings, "verify", NAME, code=1)
    assert '"missing": 1' in told
    assert child.terminate() == 0
    blind = msgspec.structs.replace(settings, **recorded("Blind", digest=False))
    second = worker(spawn, blind, jobs=1)
    assert "cannot be compared with the history" in ran(spawn, blind, "verify", NAME, code=1)
    assert second.terminate() == 0


def test_one_rebuild_at_a_time(redis_client: redis.Redis, make_settings: MakeSettings) -> None:
    """G8: a second command is told who works; one that was killed here does not keep it out."""
    keys = Keys(make_settings().namespace)
    with RebuildLock(redis_client, keys, NAME, "rebuild", "ann"):
        assert at_work(redis_client, keys, [NAME])[NAME].by == "ann"
        with pytest.raises(RebuildRuns, match="rebuild of rec runs already"):
            RebuildLock(redis_client, keys, NAME, "verification", "ben").__enter__()
    assert at_work(redis_client, keys, [NAME]) == {}
    lock = RebuildLock(redis_client, keys, NAME, "rebuild", "ann")
    lock._mine = msgspec.structs.replace(lock._mine, pid=2**22 + 1)  # a process that is gone
    lock.__enter__()
    with RebuildLock(redis_client, keys, NAME, "rebuild", "ben"):
        assert at_work(redis_client, keys, [NAME])[NAME].by == "ben"


def test_what_a_killed_rebuild_left_is_named(
    redis_client: redis.Redis, make_settings: MakeSettings
) -> None:
    """G8: nothing stays held for ever unseen: doctor says what stands still, and what to do."""
    settings = make_settings(**recorded("Transactional"))
    keys = Keys(settings.namespace)
    assert rebuilds(settings).ok
    why = Hold(held_reason("rebuild", NAME, f"{NAME}@1"), "ann", 1)
    Instances(redis_client, keys).hold(NAME, why)
    with RebuildLock(redis_client, keys, NAME, "rebuild", "ann"):
        assert rebuilds(settings).ok
    check = rebuilds(settings)
    assert not check.ok
    assert check.fix is not None
    assert f"memorybus provider resume {NAME}" in check.fix


def test_a_shared_state_is_not_rebuilt_over_itself(
    redis_client: redis.Redis, make_settings: MakeSettings, spawn: Spawn
) -> None:
    """G8: a copy that would write where the live one does is refused, with the option to give."""
    table = {"kind": "helpers.recording:KeyedShared", "collection": "one"}
    settings = make_settings(providers=(NAME,), provider={NAME: table})
    with MemoryBus.connect(settings) as bus:
        say(bus, "s", "one")
        assert bus.flush("logged", 15)
    refused = ran(spawn, settings, "rebuild", NAME, code=2)
    assert "--set collection=" in refused
    plan = ran(spawn, settings, "rebuild", NAME, "--set", "collection=two")
    assert plan["instance"]["options"] == {"collection": "two"}
