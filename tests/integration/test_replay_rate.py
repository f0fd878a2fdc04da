"""Replays with a rate: it holds over all workers, however the lanes are spread."""

import pytest
import redis
from conftest import MakeSettings
from helpers.processes import Spawn
from helpers.recording import calls, texts
from helpers.replaying import begun
from helpers.scenario import apart, home, recorded, worker
from helpers.waiting import wait_until
from memorybus.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.settings import Settings

RATE = 80.0
LONG, SHORT = 140, 30


def fill(settings: Settings) -> int:
    """Publish a long session and seven short ones, each in a lane of its own; count the events."""
    with MemoryBus.connect(settings) as bus:
        names = apart(settings, 8)
        for name in names:
            session = bus.session(name, warm=False)
            for number in range(LONG if name == names[0] else SHORT):
                session.turn_completed(f"{name} {number}", "ok", ordinal=number)
        assert bus.flush("logged", 15)
    return LONG + 7 * SHORT


@pytest.mark.timeout(60)
def test_a_rate_holds_over_all_workers(
    redis_client: redis.Redis, make_settings: MakeSettings, spawn: Spawn
) -> None:
    """G10: while lanes move to a worker that joins, no more goes on than the rate; nor less.

    One lane is much longer than the others: its part grows as these end.
    """
    settings = make_settings(**recorded("Keyed"))
    count = fill(settings)
    first = worker(spawn, settings)
    begun(settings, rate=RATE)
    second = worker(spawn, settings, wait=False)
    seen: list[tuple[float, int]] = []

    def is_filled() -> bool:
        seen.append((SYSTEM.monotonic(), len(texts(home(settings, "copy")))))
        return seen[-1][1] == count

    wait_until(is_filled, "the copy is filled", 4 * count / RATE)
    since, already = next(one for one in seen if one[1])
    ahead = max(done - already - RATE * (now - since) for now, done in seen if done)
    assert ahead < RATE / 4, "more than the rate went on, and what a late thread may catch up"
    for child in (first, second):
        assert calls(home(settings, "copy"), child.pid), "one of them did nothing"
        assert child.terminate() == 0
