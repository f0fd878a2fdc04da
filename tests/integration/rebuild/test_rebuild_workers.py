"""A rebuild while several worker processes serve the provider, each some lanes of each copy."""

from contextlib import ExitStack
from typing import Any

import pytest
import redis
from conftest import MakeSettings
from helpers.processes.processes import Spawn
from helpers.providers.recording import calls, texts
from helpers.stories.scenario import apart, home, say, worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.redis.keys import Keys
from memorybus.registry.instances import Instances
from test_rebuild import command, fill, result, settled, talking

BOTH = ("transactional", "keyed")
"""Provider instances of the two classes, on one log."""


def both(spawn: Spawn, settings: Settings, *words: str) -> list[dict[str, Any]]:
    """Run a command for both providers at once; return what each did."""
    children = [command(spawn, settings, *words, name, "--execute") for name in BOTH]
    return [result(child) for child in children]


def of_session(found: list[str], session: str) -> list[str]:
    """Return the texts of a session, in the order in which they were applied."""
    return [text for text in found if text.startswith(f"{session} ")]


@pytest.mark.timeout(120)
def test_two_workers_rebuild_roll_back_and_drop(
    redis_client: redis.Redis, make_settings: MakeSettings, spawn: Spawn
) -> None:
    """G8: two workers share the lanes of all generations; nothing is missed or doubled at a seam.

    Events of several sessions come all the time, through rebuild, rollback and drop, of a
    transactional and of a keyed provider at once.
    """
    table = {name: {"kind": f"helpers.providers.recording:{name.title()}"} for name in BOTH}
    settings = make_settings(providers=BOTH, provider=table)
    instances = Instances(redis_client, Keys(settings.namespace))
    fill(settings, count=20)
    children = [worker(spawn, settings, jobs=1) for _ in range(2)]
    with ExitStack() as talks:
        names = apart(settings, 3, "busy")
        said = [talks.enter_context(talking(settings, name, 0.05)) for name in names]
        done = both(spawn, settings, "rebuild")
        assert [(one["live"], one["compared"]["differing"]) for one in done] == [
            (f"{name}@1", 0) for name in BOTH
        ]
        assert set(instances.pauses()) == set(BOTH)
        back = both(spawn, settings, "rebuild", "--rollback")
        assert [(one["live"], one["held_ms"]) for one in back] == [(name, 0) for name in BOTH]
        kept = {name: texts(home(settings, f"{name}@1")) for name in BOTH}
        for place in (home(settings, one) for name in BOTH for one in (name, f"{name}@1")):
            assert all(calls(place, child.pid) for child in children), "one worker served it alone"
        dropped = both(spawn, settings, "rebuild", "--drop")
        assert [one["dropped"] for one in dropped] == [[f"{name}@1"] for name in BOTH]
    with MemoryBus.connect(settings) as bus:
        say(bus, "late", "late: after all that")
        assert bus.flush("logged", 25)
    for name in BOTH:
        settled(redis_client, settings, name)
        found = texts(home(settings, name))
        for session, words in zip(names, said, strict=True):
            assert of_session(found, session) == words
            then = of_session(kept[name], session)
            assert then == words[: len(then)]
        assert len(found) == 4 * 21 + sum(map(len, said)) + 1
        assert not home(settings, f"{name}@1").exists()
    assert [child.terminate() for child in children] == [0, 0]
