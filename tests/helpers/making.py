"""What fixtures that make things are typed as, and the settings that they begin with."""

from collections.abc import Callable
from typing import Any

from memorybus.config.settings import Settings

from helpers.redis.servers import RedisServer

MakeSettings = Callable[..., Settings]
MakeServer = Callable[..., RedisServer]

SHORT_TIMINGS: dict[str, Any] = {
    "lease": 2.0,
    "call_timeout": 1.0,
    "heartbeat": 0.2,
    "spool_keep": 0.2,
    "recall_wait": 1.0,
    "recall_timeout": 5.0,
    "prefetch_deadline": 0.5,
    "derivers": (),  # an event that no test published would be counted
}
