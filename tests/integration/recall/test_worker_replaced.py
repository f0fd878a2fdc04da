"""Recalls that are asked while the worker of a provider is replaced, and another's goes on."""

from typing import Any

import msgspec
import redis
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.recall.model import warm_results
from memorybus.redis.keys import Keys
from memorybus_console.operations.stores import Stores

KIND = "helpers.providers.recalls:Answering"


def test_what_is_asked_between_two_workers_is_answered_by_the_second(
    redis_client, make_settings, spawn
):
    """G9: a provider whose worker is replaced is asked, though a worker of another one lives."""
    names = ("kept", "replaced")
    both = make_settings(providers=names, provider={name: {"kind": KIND} for name in names})
    kept, replaced = (
        msgspec.structs.replace(both, providers=(name,), provider={name: {"kind": KIND}})
        for name in names
    )
    worker(spawn, kept, jobs=1)
    first = worker(spawn, replaced, jobs=1)
    with Stores(both) as stores, MemoryBus.connect(both) as bus:
        wait_until(lambda: len(stores.roster.alive()) == 2, "both show that they live")
        bus.session("before").queue_prefetch("the red house")
        wait_until(lambda: answers(redis_client, both) == set(names), "both answer")
        (gone,) = (one.id for one in stores.roster.alive() if one.providers == ("replaced",))
        first.kill()
        stores.roster.leave(gone)  # as the process that started it says
        redis_client.delete(*redis_client.scan_iter(Keys(both.namespace).warm("*")))
        bus.session("s").queue_prefetch("the blue house")
        wait_until(lambda: answers(redis_client, both) == {"kept"}, "the other one answers")
        worker(spawn, replaced, jobs=1)
        wait_until(lambda: "replaced" in answers(redis_client, both), "its next worker does")


def answers(client: redis.Redis, settings: Settings) -> set[str]:
    """Return the providers of which an answer is warm: of lines that are alike, one is shown."""
    fields: Any = [
        client.hgetall(key) for key in client.scan_iter(Keys(settings.namespace).warm("*"))
    ]
    return {name for warm in fields for name in warm_results(warm.items())}
