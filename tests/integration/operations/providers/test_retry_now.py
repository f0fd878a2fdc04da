"""What operators want of providers at work: other limits of calls, and another try at once."""

from collections.abc import Sequence

import pytest
from helpers.processes.processes import Child
from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, texts
from helpers.stories.rebuilding import ran
from helpers.stories.scenario import (
    NAME,
    home,
    recorded,
    say,
    spread_sessions,
    thread_worker,
    wait_applied,
)
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.health.monitor import read_status
from memorybus.health.status import ProviderStatus
from memorybus.log.entry import LoggedEvent
from memorybus_workers.calls import retry
from memorybus_workers.lanes import halts
from memorybus_workers.lanes.lane import Lane

RETRY_SECONDS = 3_600.0
"""Seconds that no test waits for."""


def told(settings: Settings) -> ProviderStatus:
    """Return what the status says of the only provider."""
    (one,) = read_status(settings).providers
    return one


def said(command: Child) -> str:
    """Return all that a command said that shall succeed."""
    assert command.wait() == 0, command.output()
    return command.output()


@pytest.fixture(name="endless_waits")
def _endless_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every wait for another try last for longer than any test."""
    monkeypatch.setattr(retry, "retry_delay", lambda *_: RETRY_SECONDS)
    monkeypatch.setattr("memorybus_workers.calls.breaker.retry_delay", lambda *_: RETRY_SECONDS)
    monkeypatch.setattr(
        "memorybus_workers.calls.failing_events.retry_delay", lambda *_: RETRY_SECONDS
    )
    monkeypatch.setattr(halts, "FIRST_RETRY_SECONDS", RETRY_SECONDS)


@pytest.mark.usefixtures("endless_waits")
@pytest.mark.parametrize("kind", ["Transactional", "Keyed", "KeyedSide", "Blind"])
@pytest.mark.parametrize("misdeed", ["!unavailable", "!transient"])
def test_what_waits_goes_on_at_once(redis_client, make_settings, spawn, flag, kind, misdeed):
    """G6: once a backend is mended, one command ends the wait, in every worker; nothing is parked.

    Said twice it changes nothing more.
    """
    flag.touch()
    settings = make_settings(partitions=2, **recorded(kind))
    with MemoryBus.connect(settings) as bus, thread_worker(settings), thread_worker(settings):
        for session in spread_sessions(settings, 2):
            say(bus, session, f"{misdeed}={flag} {session}", f"{session} behind")
        assert bus.flush(timeout=25)
        wait_until(lambda: len(calls(home(settings))) >= 2 or told(settings).failing, "calls fail")
        wait_until(lambda: told(settings).failing or misdeed == "!transient", "the status says so")
        flag.unlink()
        for _ in range(2):
            done = ran(spawn, settings, "provider", "retry-now", NAME)
            assert (done["executed"], done["workers"]) == (True, 2)
        wait_applied(redis_client, settings)
        assert told(settings).dead_letters == 0
    assert len(texts(home(settings))) == 4


@pytest.mark.usefixtures("endless_waits")
def test_a_lane_that_stands_still_goes_on_at_once(
    redis_client, make_settings, spawn, monkeypatch, flag
):
    """G7: a lane whose turns failed is tried again at once, too, once somebody says so."""
    real = Lane.read

    def read(lane: Lane, most: int) -> Sequence[LoggedEvent]:
        if flag.exists():
            raise ZeroDivisionError("a mistake of ours")
        return real(lane, most)

    monkeypatch.setattr(Lane, "read", read)
    settings = make_settings(partitions=1, **recorded("Transactional"))
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "s", "one")
        assert bus.flush(timeout=25)
        wait_until(lambda: "is stopped" in repr(read_status(settings).alarms), "it is told")
        flag.unlink()
        ran(spawn, settings, "provider", "retry-now", NAME)
        wait_applied(redis_client, settings)
    assert texts(home(settings)) == ["one"]


def test_parked_ones_go_on_too_if_that_is_wanted(redis_client, make_settings, spawn, flag):
    """G6: with --parked the dead letters are applied again in order, and only then."""
    flag.touch()
    settings = make_settings(partitions=1, **recorded("Keyed"))
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "s", f"!permanent={flag} one", "two")
        assert bus.flush(timeout=25)
        wait_until(lambda: told(settings).dead_letters == 2, "they are parked")
        flag.unlink()
        ran(spawn, settings, "provider", "retry-now", NAME)
        assert told(settings).dead_letters == 2
        words = ("provider", "retry-now", NAME, "--parked")
        assert ran(spawn, settings, *words)["parked"] == 2
        wait_until(lambda: told(settings).dead_letters == 0, "they are applied")
    assert texts(home(settings)) == [f"!permanent={flag} one", "two"]
