"""An event that ends its workers, amid hundreds that do not: found after four deaths."""

from collections import Counter

import pytest
from helpers.faults.crew import Crew
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.scenario import NAME, PATIENT, backlog, home, recorded
from memorybus.agent.client import MemoryBus
from memorybus.health.monitor import read_status
from memorybus.redis.keys import Keys

GOOD = 400
DEADLY = 250
"""Behind so many good events the deadly one comes: within a batch of the lane's."""
DEATHS = 4
"""One that shows nothing, one with a small batch that was noted, two of the event alone."""


@pytest.mark.timeout(150)
@pytest.mark.parametrize("kind", ["Transactional", "Keyed", "KeyedBulk", "KeyedSide"])
def test_a_deadly_event_amid_hundreds_is_found(redis_client, make_settings, spawn, kind):
    """G6: a deadly event costs four workers wherever it is in a batch, and parks only its key."""
    settings = make_settings(partitions=1, **PATIENT, **recorded(kind))
    with MemoryBus.connect(settings) as bus:
        for number in range(GOOD):
            if number == DEADLY:
                bus.session("bad", warm=False).turn_completed("!exit now", "ok")
            bus.session(f"s{number % 20}", warm=False).turn_completed(f"number {number}", "ok")
        bus.session("bad", warm=False).turn_completed("behind it", "ok")
        assert bus.flush(timeout=25)
    deaths = 0
    crew = Crew(spawn, settings)
    crew.start()

    def goes_on() -> bool:
        nonlocal deaths
        deaths += crew.replace_dead()
        return backlog(redis_client, settings) == 0

    wait_until(goes_on, "the event is parked and the lane goes on", 100)
    crew.stop()
    assert Counter(texts(home(settings))) == Counter(f"number {n}" for n in range(GOOD))
    assert deaths == DEATHS
    (status,) = read_status(settings).providers
    assert (status.parked_keys, status.dead_letters) == (1, 2)
    fields = redis_client.hkeys(Keys(settings.namespace).lane(0, NAME))
    assert not {b"tries", b"suspects"} & set(fields), "what is over is not noted any more"
