"""Replays with a rate: it holds over all workers, however the lanes are spread."""

import pytest
from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, texts
from helpers.stories.replaying import begun
from helpers.stories.scenario import home, recorded, spread_sessions, thread_worker, worker
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus_console.cli.app import main

RATE = 80.0
LONG_TURNS, SHORT_TURNS = 140, 30


def fill(settings: Settings) -> int:
    """Publish a long session and seven short ones, each in a lane of its own; count the events."""
    with MemoryBus.connect(settings) as bus:
        names = spread_sessions(settings, 8)
        for name in names:
            session = bus.session(name, warm=False)
            for number in range(LONG_TURNS if name == names[0] else SHORT_TURNS):
                session.turn_completed(f"{name} {number}", "ok", ordinal=number)
        assert bus.flush("logged", 25)
    return LONG_TURNS + 7 * SHORT_TURNS


@pytest.mark.timeout(120)
def test_a_rate_holds_over_all_workers(redis_client, make_settings, spawn):
    """G10: while lanes move to a worker that joins, no more goes on than the rate; nor less.

    One lane is much longer than the others: its part grows as these end.
    """
    settings = make_settings(**recorded("Keyed"))
    count = fill(settings)
    first, second = worker(spawn, settings), worker(spawn, settings)
    second.freeze()  # it joins when it wakes; a process that starts may be too late
    begun(settings, rate=RATE)
    seen: list[tuple[float, int, float]] = []

    def look() -> int:
        before, done = SYSTEM.monotonic(), len(texts(home(settings, "copy")))
        seen.append((before, done, SYSTEM.monotonic()))
        return done

    wait_until(look, "the first fills the copy")
    second.thaw()
    wait_until(lambda: look() == count, "the copy is filled", 40)
    since, already, _ = next(one for one in seen if one[1])
    # Counted before `now` and after `since`: a look that takes long finds no more than there is.
    ahead = max(done - already - RATE * (now - since) for _, done, now in seen if done)
    assert ahead < RATE / 4, "more than the rate went on, and what a late thread may catch up"
    for child in (first, second):
        assert calls(home(settings, "copy"), child.pid), "one of them did nothing"
        assert child.terminate() == 0


def test_another_rate_holds_from_then_on(redis_client, make_settings):
    """G8: who goes on with another rate has it; without one it stays."""
    settings = make_settings(**recorded("Keyed"))
    count = fill(settings)
    slow = begun(settings, rate=6.0)
    with thread_worker(settings, only="copy"):
        wait_until(lambda: texts(home(settings, "copy")), "it fills")
        same = begun(settings)
        assert (same.known, same.instance) == (True, slow.instance)
        free = begun(settings, rate=0.0)
        assert free.instance.plan.rate == 0
        wait_until(lambda: len(texts(home(settings, "copy"))) == count, "it is filled")


@pytest.mark.parametrize("rate", ["inf", "nan", "-1"])
def test_a_rate_is_a_number(rate, capsys):
    """G8: what no record can hold is refused before anything is asked."""
    assert main(["replay", "--provider", "builtin", "--into", "copy", "--rate", rate]) == 2
    assert "It must be a number, 0 or greater." in " ".join(capsys.readouterr().err.split())
