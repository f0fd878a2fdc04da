"""What a worker keeps warm shows the days of the settings."""

from pathlib import Path

import msgspec
from helpers.providers.given import GivenInstances
from memorybus.clock import SYSTEM
from memorybus.recall.model import RecallRequest, WarmResult
from memorybus.redis.keys import Keys
from memorybus_providers.base import MemoryProvider, ProviderConfig, RecallContext, Recollection
from memorybus_workers.jobs.prefetch import ReadYourWrites, Recaller

LATE = 1_795_656_600_000
"""2026-11-26, 1:30 UTC: in New York it is the evening before."""


class Late(MemoryProvider):
    """Remembers one thing that was said late in the evening."""

    kind = "late"

    def __init__(self, name: str) -> None:
        super().__init__(ProviderConfig(name=name, home=Path()))

    def prefetch(self, query: str, ctx: RecallContext) -> list[Recollection]:
        """Return it."""
        return [Recollection(text="Tea is at five", at=LATE)]


def test_a_recall_shows_the_days_of_the_setting(redis_client, make_settings):
    """A worker renders what its provider found in the zone of its settings."""
    settings = make_settings(timezone="America/New_York")
    keys = Keys(settings.namespace)
    body = msgspec.json.encode(RecallRequest("When?"))
    redis_client.hset(keys.want("s"), mapping={"g": 1, "r": body})
    redis_client.pexpire(keys.want("s"), 60_000)
    applied = ReadYourWrites(redis_client, keys, 0.0, SYSTEM)
    instances = GivenInstances(settings, redis_client, Late)
    Recaller(redis_client, settings, SYSTEM, instances, applied).warm("s", "p")
    (stored,) = [
        msgspec.msgpack.decode(value, type=WarmResult)
        for name, value in redis_client.hgetall(keys.warm("s")).items()
        if name == b"p"
    ]
    assert stored.lines == ("- [2026-11-25] Tea is at five",)
