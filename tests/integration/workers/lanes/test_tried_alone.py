"""Events that go alone since owners died: alone in their worker, whatever provider they are for."""

from typing import Any, cast

import pytest
from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, texts
from helpers.stories.scenario import (
    home,
    leave_dead,
    partition,
    say,
    spread_sessions,
    thread_worker,
)
from memorybus.agent.client import MemoryBus
from memorybus.redis.keys import Keys

NAMES = ("one", "two")


@pytest.mark.parametrize(
    "kinds",
    [("Keyed", "Keyed"), ("KeyedSide", "LookupSide"), ("Transactional", "KeyedSide")],
)
def test_what_goes_alone_is_alone_in_its_worker(redis_client, make_settings, flag, kinds):
    """G6: of two providers whose lanes' owners died, one event is under way; neither is skipped."""
    tables = {
        name: {"kind": f"helpers.providers.recording:{kind}"}
        for name, kind in zip(NAMES, kinds, strict=True)
    }
    timings = {"partitions": 2, "call_timeout": 8.0, "lease": 10.0}
    settings = make_settings(**timings, providers=NAMES, provider=tables)
    keys, slow = Keys(settings.namespace), f"!hang={flag} slow"
    careful, sound = spread_sessions(settings, 2)

    def has(*words: str) -> list[str]:
        return [name for name in NAMES if set(words) <= set(texts(home(settings, name)))]

    with MemoryBus.connect(settings) as bus:
        say(bus, careful, slow)
        assert bus.flush(timeout=25)
        for name in NAMES:
            leave_dead(redis_client, keys.lane(partition(settings, careful), name), 1, 2)
        with thread_worker(settings):
            wait_until(lambda: any(calls(home(settings, name)) for name in NAMES), "one is called")
            say(bus, sound, "sound")
            wait_until(lambda: has("sound"), "the other provider's sound lane goes on")
            say(bus, sound, "sound again")
            wait_until(lambda: has("sound", "sound again"), "all its lanes had their turn")
            assert sum(calls(home(settings, name)).count(slow) for name in NAMES) == 1
            flag.unlink()
            wait_until(lambda: len(has(slow, "sound", "sound again")) == 2, "both have all")
    place = partition(settings, careful)
    assert not any(redis_client.xlen(keys.dead(place, name)) for name in NAMES)
    lanes: Any = [redis_client.hgetall(keys.lane(place, name)) for name in NAMES]
    noted = {b"tries", b"suspects"}
    assert not any(noted & cast("dict[bytes, bytes]", lane).keys() for lane in lanes)
