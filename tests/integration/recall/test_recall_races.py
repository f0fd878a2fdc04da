"""Recalls while something else happens: a jobs' Redis that hangs, keys that come and go."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import redis
from helpers.providers.given import GivenInstances
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.errors import Unavailable
from memorybus.recall.model import CarryAsk, RecallRequest, WarmResult
from memorybus.recall.requester import RecallRequester
from memorybus.redis.connect import TIMEOUT
from memorybus.redis.keys import Keys
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
