"""Recalls while something else happens: a jobs' Redis that hangs, a worker that is replaced."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import redis
from helpers.processes.waiting import wait_until
from helpers.providers.given import GivenInstances
from helpers.stories.scenario import worker
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import Unavailable
from memorybus.recall.model import CarryAsk, RecallRequest, WarmResult, warm_results
from memorybus.recall.requester import RecallRequester
from memorybus.redis.connect import TIMEOUT
from memorybus.redis.keys import Keys
from memorybus_console.operations.stores import Stores
from memorybus_workers.jobs.prefetch import ReadYourWrites, Recaller

HANG_SECONDS = TIMEOUT - 0.5
"""Seconds: less than the time-out of a command, more than asking may hold up an event."""


class Between:
    """A client; after its first EXISTS something else happens."""

    def __init__(self, client: redis.Redis, happens: Callable[[], object]) -> None:
        self._client = client
        self._happens = happens

    def exists(self, key: str) -> Any:
        """Ask, then let it happen."""
        found = self._client.exists(key)
        self._happens()
        return found

    def __getattr__(self, name: str) -> Any:
        """Do the rest as the client does."""
        return getattr(self._client, name)


def test_a_hanging_redis_of_the_jobs_holds_up_no_event(make_redis, make_settings):
    """G9: while the jobs' Redis alone hangs, each event is in the log within moments."""
    log, jobs = make_redis(), make_redis()
    settings = make_settings(url=log.url, jobs_url=jobs.url, providers=("builtin",))
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        session.turn_completed("a", "b")
        assert bus.flush("logged", 25)
        jobs.freeze()
        try:
            for number in range(6):
                session.queue_prefetch(f"what about the thing number {number}?")
                session.turn_completed("c", f"d{number}")
                began = SYSTEM.monotonic()
                assert bus.flush("logged", 25)
                assert SYSTEM.monotonic() - began < HANG_SECONDS
        finally:
            jobs.thaw()


def test_a_failure_told_to_a_request_that_goes_leaves_nothing(redis_client, settings):
    """G10: a request that expires while its failure is told leaves no key without an end."""
    key = Keys(settings.namespace).want("s")
    body = msgspec.json.encode(RecallRequest("q"))
    redis_client.hset(key, mapping={"g": 1, "r": body})
    redis_client.pexpire(key, 60_000)
    client: Any = Between(redis_client, lambda: redis_client.delete(key))

    def opened(name: str) -> Any:
        raise Unavailable("the backend is down")

    applied = ReadYourWrites(redis_client, Keys(settings.namespace), 0.0, SYSTEM)
    instances = GivenInstances(settings, client, opened)
    recaller = Recaller(client, settings, SYSTEM, instances, applied)
    with pytest.raises(Unavailable):
        recaller.warm("s", "builtin")
    assert redis_client.ttl(key) != -1


def test_what_is_carried_over_replaces_no_answer(redis_client, settings):
    """G9: an answer that comes while older ones are carried over stays; the others come along."""
    keys = Keys(settings.namespace)

    def result(text: str) -> bytes:
        return msgspec.msgpack.encode(WarmResult((text,), (), ""))

    old = {"one": result("old"), "g:one": 7, "two": result("other"), "g:two": 7}
    redis_client.hset(keys.warm("old"), mapping=old)
    redis_client.pexpire(keys.warm("old"), 60_000)
    new = {"one": result("new"), "g:one": 1}
    client: Any = Between(redis_client, lambda: redis_client.hset(keys.warm("new"), mapping=new))
    RecallRequester(client, settings).ask(CarryAsk("new", 0, "old"))
    assert redis_client.hgetall(keys.warm("new")) == {
        b"one": result("new"),
        b"g:one": b"1",
        b"two": result("other"),
    }
    assert redis_client.ttl(keys.warm("new")) > 0


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
