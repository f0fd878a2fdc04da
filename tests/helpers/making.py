"""What fixtures that make things are typed as: `make_settings`, `make_redis`."""

from collections.abc import Callable

from memorybus.config.settings import Settings

from helpers.redis.servers import RedisServer

MakeSettings = Callable[..., Settings]
MakeServer = Callable[..., RedisServer]
