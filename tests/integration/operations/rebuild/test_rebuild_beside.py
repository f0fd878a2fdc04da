"""A rebuild beside what goes on: replies, warm results, other commands, backends of other kinds."""

import os
from functools import partial
from io import StringIO
from typing import cast

import msgspec
import pytest
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.rebuilding import (
    NEXT,
    command,
    damage,
    fill,
    live,
    paused_names,
    ran,
    result,
    settled,
    talking,
)
from helpers.stories.replaying import cli
from helpers.stories.scenario import NAME, TESTS, home, publish, recorded, say, worker
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.health.finding import Check
from memorybus.health.findings import find_paused
from memorybus.health.monitor import read_status
from memorybus.health.status import Status
from memorybus.redis.keys import Keys
from memorybus.registry.homes import Home
from memorybus.registry.instances import Instance, InstancePause, Instances, Live, command_pause
from memorybus.registry.rebuild_lock import RebuildLock, RebuildRuns, running_rebuilds
from memorybus.registry.roster import WorkerInfo
from memorybus_console.operations.doctor.doctor import checks_of
from memorybus_console.operations.doctor.instances import check_rebuilds
from memorybus_console.operations.rebuild.rebuild import open_rebuilder
from memorybus_console.operations.stores import Stores
from memorybus_console.views.status import status_tables
from rich.console import Console, Group

MESSAGES = ({"role": "user", "content": "walnut"}, {"role": "assistant", "content": "ok"})


@pytest.mark.timeout(120)
def test_every_compression_is_answered_through_the_swap(redis_client, make_settings, spawn):
    """G8: who asks before, during and after the swap is answered, in the provider's own name."""
    table = {"kind": "helpers.providers.tooling:NotingOnce"}
    settings = make_settings(providers=(NAME,), provider={NAME: table})
    fill(settings, "ab", 5)
    child = worker(spawn, settings, jobs=1)
    rebuild = command(spawn, settings, "rebuild", NAME, "--no-verify", "--yes")
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
def test_warm_results_of_before_are_asked_for_anew(redis_client, make_settings, spawn):
    """G8: what was warm of a poisoned state goes with it; the session is warm again by itself."""
    settings = make_settings(**recorded("Transactional"))
    for user in ("ann", "mallory"):
        with MemoryBus.connect(msgspec.structs.replace(settings, user=user)) as bus:
            say(bus, f"of-{user}", f"walnut {user}")
            assert bus.flush("logged", 25)
    child = worker(spawn, settings, jobs=1)
    settled(redis_client, settings, NAME)
    damage(home(settings), "update effects set user = 'ann'")  # somebody got into ann's memory
    with MemoryBus.connect(msgspec.structs.replace(settings, user="ann")) as bus:
        session = bus.session("asks")
        session.queue_prefetch("walnut")
        wait_until(lambda: "mallory" in session.prefetch("walnut"), "the poison is warm")
        words = ("rebuild", NAME, "--except-user", "mallory", "--yes")
        done = ran(spawn, settings, *words)
        assert done["purged"] >= 1
        assert "mallory" not in session.prefetch("walnut")
        wait_until(lambda: "walnut ann" in session.prefetch("walnut"), "it is warm again")
    assert child.terminate() == 0


def test_a_backend_without_a_digest_cannot_be_verified(redis_client, make_settings, spawn):
    """G8: of a provider that gives no digest no command promises to compare two states."""
    settings = make_settings(**recorded("WithoutDigest"))
    child = worker(spawn, settings, jobs=1)
    assert not ran(spawn, settings, "rebuild", NAME)["compared"]
    assert "cannot be compared with the history" in ran(spawn, settings, "verify", NAME, code=1)
    assert child.terminate() == 0


def test_one_rebuild_at_a_time(redis_client, make_settings, monkeypatch):
    """G8: a second command is told who works; one that was killed here does not keep it out."""
    keys = Keys(make_settings().namespace)
    with RebuildLock(redis_client, keys, NAME, "rebuild", "ann"):
        assert running_rebuilds(redis_client, keys, [NAME])[NAME].by == "ann"
        with pytest.raises(RebuildRuns, match="rebuild of rec runs already"):
            RebuildLock(redis_client, keys, NAME, "verification", "ben").__enter__()
    assert running_rebuilds(redis_client, keys, [NAME]) == {}
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: 2**22 + 1)  # a process that is gone
        lock = RebuildLock(redis_client, keys, NAME, "rebuild", "ann")
    lock.__enter__()
    with RebuildLock(redis_client, keys, NAME, "rebuild", "ben"):
        assert running_rebuilds(redis_client, keys, [NAME])[NAME].by == "ben"


def test_a_pause_that_changed_is_not_ended(redis_client, make_settings):
    """G8: only the very pause that was seen is ended: a later command's is another."""
    instances = Instances(redis_client, Keys(make_settings().namespace))
    mine, later = (command_pause("rebuild", NAME, NEXT, "ann", at) for at in (1, 2))
    instances.set_pause(NAME, mine)

    def change(known: InstancePause | None) -> None:
        instances.set_pause(NAME, later)
        seen.append(known)

    seen: list[InstancePause | None] = []
    assert (
        instances.change_pause(NAME, lambda known: known if known == later else change(known))
        == later
    )
    assert seen == [mine]
    assert instances.pauses() == {NAME: later}


def test_what_a_killed_rebuild_left_is_named(redis_client, make_settings):
    """G8: nothing stays paused for ever unseen: doctor says what stands still, and what to do."""
    settings = make_settings(**recorded("Transactional"))
    keys = Keys(settings.namespace)
    assert check_rebuilds(settings).ok
    why = command_pause("rebuild", NAME, f"{NAME}@1", "ann", 1)
    Instances(redis_client, keys).set_pause(NAME, why)
    with RebuildLock(redis_client, keys, NAME, "rebuild", "ann"):
        assert check_rebuilds(settings).ok
    check = check_rebuilds(settings)
    assert not check.ok
    assert check.fix is not None
    assert f"memorybus provider resume {NAME}" in check.fix


def test_a_shared_state_is_not_rebuilt_over_itself(redis_client, make_settings, spawn):
    """G8: a copy that would write where the live one does is refused, with the option to give."""
    table = {"kind": "helpers.providers.recording:KeyedShared", "collection": "one"}
    settings = make_settings(providers=(NAME,), provider={NAME: table})
    publish(settings, "s", "one")
    refused = ran(spawn, settings, "rebuild", NAME, code=2)
    assert "--set collection=" in refused
    plan = ran(spawn, settings, "rebuild", NAME, "--set", "collection=two")
    assert plan["instance"]["options"] == {"collection": "two"}


def mailed(settings: Settings) -> list[str]:
    """Return every mail that went out, of whichever generation."""
    places = sorted((settings.data_dir / "providers").glob(f"{NAME}*"))
    found = [text for place in places for text in texts(place)]
    return sorted(text for text in found if text.startswith("mail"))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("killed", [(), ("met", "swapped", "purged")])
def test_what_acts_on_the_world_is_done_once_through_the_swap(
    killed, redis_client, make_settings, spawn
):
    """G8: a call that acts on the world is carried out by exactly one generation, also after kills.

    Killed while both stand still for each other, or later, it holds nobody: who serves goes on by
    itself. The same command then ends the swap.
    """
    table = {"kind": "helpers.providers.tooling:Mailing"}
    settings = make_settings(providers=(NAME,), provider={NAME: table})
    fill(settings, "ab", 5)
    child = worker(spawn, settings, jobs=1)
    settled(redis_client, settings, NAME)
    said: list[str] = []
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        known = partial(session.call_tool, "note_add", {"text": "known"}, timeout=5.0)
        wait_until(lambda: "noted" in str(known()), "the agent knows the tools")
        for point in [*killed, ""]:
            crash = f"rebuild.{point}" if point else ""
            words = ("rebuild", NAME, "--no-verify", "--yes")
            rebuild = command(spawn, settings, *words, crash_at=crash)
            while rebuild.alive:
                said.append(f"mail {len(said):04}")
                session.call_tool("mail_send", {"text": said[-1]}, timeout=0.02)
            assert rebuild.wait() == (-9 if point else 0), rebuild.output()
            assert bus.flush("logged", 25)
            wait_until(lambda: mailed(settings)[-1:] == said[-1:], "who serves goes on")
        done = result(rebuild)
        assert killed or 0 < done["paused_ms"] < 20_000
    settled(redis_client, settings, f"{NAME}@1")
    assert (live(redis_client, settings), paused_names(redis_client, settings)) == (
        f"{NAME}@1",
        {NAME},
    )
    assert mailed(settings) == said
    assert any(text in texts(home(settings, f"{NAME}@1")) for text in said)
    assert child.terminate() == 0


def served_check(status: Status) -> Check:
    """Return the doctor's check of whether every provider is served."""
    (check,) = (check for check in checks_of(status, [NAME], 0) if check.name == "providers")
    return check


@pytest.mark.timeout(120)
def test_a_swap_is_no_trouble_to_status_and_doctor(redis_client, make_settings, spawn):
    """G8: the live one stands for its provider; one that is kept or dropped waits for nothing."""
    settings = make_settings(**recorded("Transactional"))
    fill(settings, "ab", 5)
    child = worker(spawn, settings, jobs=1)
    done = ran(spawn, settings, "rebuild", NAME, "--yes")
    assert done["paused_ms"] > 0
    fill(settings, "cd", 5)
    settled(redis_client, settings, f"{NAME}@1")
    (one,) = read_status(settings).providers
    assert (one.name, one.live, one.backlog, one.paused) == (NAME, f"{NAME}@1", 0, "")
    assert one.applied == 29, "with the record of the act"
    (kept,) = read_status(settings).copies
    assert (kept.name, kept.copy_of, kept.lanes_owned) == (NAME, NAME, 0)
    assert kept.kept
    shown = shown_status(settings)
    assert f"provider resume {NAME}" not in shown
    assert f"{NAME} is served by {NAME}@1" in shown
    status = read_status(settings)
    assert list(find_paused(status)) == []
    assert served_check(status).found == f"all lanes of {NAME}@1 are owned"
    ran(spawn, settings, "rebuild", "--drop", NAME, "--yes")
    status = read_status(settings)
    assert (len(status.providers), status.copies) == (1, [])
    assert (status.providers[0].live, status.providers[0].backlog) == (f"{NAME}@1", 0)
    assert list(find_paused(status)) == []
    assert served_check(status).ok
    assert f"served by {NAME}@1" in shown_status(settings)
    assert child.terminate() == 0


def shown_status(settings: Settings) -> str:
    """Return what `memorybus status` shows."""
    output = Console(file=StringIO(), width=300)
    output.print(Group(*status_tables(read_status(settings), [], SYSTEM.now_ms())))
    return cast("StringIO", output.file).getvalue()


@pytest.mark.timeout(120)
def test_both_stand_at_one_place_though_events_come(
    redis_client, make_settings, spawn, monkeypatch
):
    """G8: a key that changes all the time is compared where both states end at the same event."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    settings = make_settings(**recorded("Transactional"))
    fill(settings, "ab", 5)
    child = worker(spawn, settings, jobs=1)
    settled(redis_client, settings, NAME)
    with talking(settings) as said, open_rebuilder(settings, NAME, "rebuild", "me", _quiet) as work:
        work.add_copy(Instance(name=NEXT, provider=NAME, purpose="rebuild"))
        pause = work.pause(NAME, NEXT, "me")
        work.fill(pause, NEXT, NAME)
        one = work.comparison(NAME, NAME, NEXT)
        pause.meet(NEXT, NAME, NAME)
        count = len(said)
        assert pause.milliseconds > 0
        assert paused_names(redis_client, settings) == {NAME, NEXT}
        keys = ["a", "busy"]
        assert one.compare_again(dict.fromkeys(keys, "differs")) == {}
        assert one.digests_of(NAME, ["nobody"]) == {"nobody": ""}
        assert all(one.digests_of(NAME, keys).values())
        pause.end(NAME)
        wait_until(lambda: f"busy says {count}" in texts(home(settings)), "the live one goes on")
        assert paused_names(redis_client, settings) == {NEXT}
    assert child.terminate() == 0


def _quiet(*_: object) -> None:
    """Say nothing."""


def test_what_lies_elsewhere_is_not_called_dropped(redis_client, make_settings, spawn):
    """G8: of a generation whose state is on another host drop says where, and who removes it.

    The first of all, whose state no worker may delete, is refused before anything is changed.
    """
    settings = make_settings(
        providers=(NAME,), provider={NAME: {"kind": "helpers.providers.local:Local"}}
    )
    away = Home("f" * 32, "another-host", "/srv/memorybus", "7")
    with Stores(settings) as stores:
        for name in (NAME, NEXT):
            stores.homes.move(name, away)
        stores.add_instance(Instance(name=NEXT, provider=NAME, purpose="rebuild"))
        stores.roster.beat(WorkerInfo("w", "a-third-host", 1, 0, 0, (NAME,), 0))
        child = cli(spawn, settings, "rebuild", "--drop", NAME, "--yes")
        assert child.wait() == 0, child.output()
        assert f"/srv/memorybus/providers/{NEXT} on another-host" in child.output()
        assert "no worker there is alive" in child.output()
        assert f"dropped {NEXT}" not in child.output()
        assert stores.instances.all()[NEXT].dropped
        stores.add_instance(Instance(name=f"{NAME}@2", provider=NAME, purpose="rebuild"))
        known = stores.instances.live()[NAME]
        assert stores.instances.swap(NAME, known, Live(f"{NAME}@2", NAME))
        stores.lanes.note_new_lanes(NAME)
        child = cli(spawn, settings, "rebuild", "--drop", NAME, "--yes")
        assert child.wait() == 2, child.output()
        assert "run this command there" in child.output()
        assert stores.instances.live()[NAME].previous == NAME
