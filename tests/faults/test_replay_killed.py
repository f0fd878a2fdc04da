"""A replay killed again and again, the command or its worker, is still what the live state is."""

import signal

import psutil
import pytest
from helpers.faults.scale import chances, times
from helpers.processes.processes import Child, Spawn
from helpers.processes.waiting import wait_until
from helpers.providers.recording import state_digest, texts
from helpers.stories.replaying import command, lines
from helpers.stories.scenario import home, recorded, thread_worker, wait_applied
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings

KILLS = times(20, quick=2)
SESSIONS = ("a", "b", "c", "d", "e")
EACH = 100 * KILLS
SLOWLY = "!takes=0.003"
"""So that it is far from done when it is killed, however late that is."""
WAIT_SECONDS = 120.0


def fill(settings: Settings) -> None:
    """Publish turns of several sessions."""
    with MemoryBus.connect(settings) as bus:
        for name in SESSIONS:
            session = bus.session(name, warm=False)
            for number in range(EACH):
                session.turn_completed(f"{SLOWLY} {name} {number}", "ok", ordinal=number)
        assert bus.flush("logged", WAIT_SECONDS)


def filled(settings: Settings) -> int:
    """Count what the copy holds."""
    return len(texts(home(settings, "copy")))


def workers(spawn: Spawn) -> list[psutil.Process]:
    """Return the workers that fill the copy now."""
    ours = {"memorybus_workers", "copy"}
    return [one for one in spawn.descendants() if ours <= set(_words(one))]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["Transactional", "Keyed"])
def test_a_replay_killed_at_random(redis_client, make_settings, spawn, report, kind):
    """G8: whoever is killed, the command or its worker, nothing is missing and nothing doubled."""
    rng = chances("replay", kind)
    settings = make_settings(lease=0.6, call_timeout=0.3, batch=5, **recorded(kind))
    fill(settings)
    child = command(spawn, settings)
    hits = 0
    for number in range(KILLS):
        await_more(settings, child, rng.randrange(5, 60))
        hits += child.alive
        child = killed(spawn, settings, child, of_worker=bool(number % 2))
    assert hits > KILLS // 2, "it was done before it could be killed: publish more"
    assert child.wait(WAIT_SECONDS) == 0, child.output()
    the_act = 1  # `OperatorActed` is in the log before the plan is made
    assert lines(child)[-1]["done"] == len(SESSIONS) * (EACH + 1) + the_act
    with thread_worker(settings):
        wait_applied(redis_client, settings, timeout=WAIT_SECONDS)
    found = texts(home(settings, "copy"))
    events = len(SESSIONS) * EACH
    report(
        faults=hits,
        events=events,
        lost=events - len(set(found)),
        twice=len(found) - len(set(found)),
    )
    assert state_digest(home(settings, "copy")) == state_digest(home(settings))
    assert filled(settings) == len(SESSIONS) * EACH


def await_more(settings: Settings, child: Child, some: int) -> None:
    """Wait until the copy holds so many more, or has all."""
    before = filled(settings)

    def more() -> bool:
        return filled(settings) > before + some or not child.alive

    wait_until(more, "it fills", WAIT_SECONDS)


def killed(spawn: Spawn, settings: Settings, child: Child, *, of_worker: bool) -> Child:
    """Kill one of the two; return the command that goes on."""
    if of_worker:
        for one in workers(spawn):
            one.kill()
        return child
    child.send(signal.SIGKILL)
    child.wait()
    return command(spawn, settings)
