"""Who may call the gateway: a key with the right, or this machine while there is no key."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from functools import partial
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, to_thread
from memorybus.clock import Clock
from memorybus.health.metrics_server import is_loopback
from starlette.requests import Request

from memorybus_console.gateway.gateway import ApiCaller
from memorybus_console.gateway.keys import LOCAL, ApiKey, KeyRing, NoAccess, Right
from memorybus_console.gateway.problems import RequestRefused

_T = TypeVar("_T")

MOST_THREADS: Final = 256
"""The most requests that are carried out at once; each has a thread, which may wait."""

MOST_OF_A_KEY: Final = 32
"""Of these, those of one key: its others wait for their turn."""

_MOST_BUCKETS: Final = 10_000
_FORWARDED: Final = (
    *("forwarded", "via", "x-real-ip"),
    *("x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"),
)
"""Headers of proxies: behind one, everybody seems to call from this machine."""


class Gate:
    """Admits callers. Any thread may use it.

    Args:
        keys: the keys.
        origins: the origins of browsers' pages that may call.
        clock: time.
    """

    def __init__(self, keys: KeyRing, origins: Collection[str], clock: Clock) -> None:
        self._keys = keys
        self._origins = frozenset(origins)
        self._rates = RequestRates(clock)

    def admit(self, request: Request, right: Right) -> ApiCaller:
        """Return who calls.

        Raises:
            NoAccess: the key is missing, unknown, revoked or has ended.
            NotAllowed: the key does not allow this.
            RequestRefused: a page of another site calls, or the caller sends too much.
            LogUnavailable: Redis is away, and this process has read no keys yet.
        """
        origin = request.headers.get("origin")
        if origin is not None and origin not in self._origins:
            raise RequestRefused(
                403, "ForeignOrigin", "pages of other sites may not call: --origin"
            )
        key = self.find_key(request, right)
        self._rates.count(key)
        return ApiCaller(key, request.headers.get("idempotency-key", ""))

    def find_key(self, request: Request, right: Right) -> ApiKey:
        """Return the key of a request, as it is now.

        Raises:
            NoAccess, NotAllowed, LogUnavailable: as for `admit`.
        """
        key = self._key(request)
        key.check(right)
        return key

    def _key(self, request: Request) -> ApiKey:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and token:
            return self._keys.find(token.strip())
        if is_this_machine(request) and self._keys.is_empty():
            return LOCAL
        raise NoAccess("send a key: authorization: Bearer mbk_…; memorybus key create makes one")


def is_this_machine(request: Request) -> bool:
    """Return whether a request comes from this machine, and not through a proxy; pure."""
    host = request.client.host if request.client else ""
    name = request.url.hostname or ""
    proxied = any(header in request.headers for header in _FORWARDED)
    return is_loopback(host) and is_loopback(name) and not proxied


class RequestRates:
    """Counts the requests of each key: a bucket that fills once a second. Any thread may use it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count(self, key: ApiKey) -> None:
        """Count a request.

        Raises:
            RequestRefused: the key has sent more than it may within a second.
        """
        if not key.per_second:
            return
        now = self._clock.monotonic()
        with self._lock:
            room, at = self._buckets.pop(key.id, (float(key.per_second), now))
            room = min(float(key.per_second), room + (now - at) * key.per_second)
            self._buckets[key.id] = (max(0.0, room - 1), now)
            while len(self._buckets) > _MOST_BUCKETS:
                self._buckets.popitem(last=False)
        if room < 1:
            detail = f"key {key.id} has {key.per_second} requests a second; wait a second"
            raise RequestRefused(429, "TooManyRequests", detail)


class RequestThreads:
    """The threads that carry requests out, so that those of one key do not keep others waiting."""

    def __init__(self) -> None:
        self.limiter = CapacityLimiter(MOST_THREADS)
        self._by_key: WeakValueDictionary[str, CapacityLimiter] = WeakValueDictionary()

    def turn(self, key: ApiKey) -> CapacityLimiter:
        """Return what a request of a key waits for: ``async with``."""
        return self._by_key.setdefault(key.id, CapacityLimiter(MOST_OF_A_KEY))

    async def run(self, key: ApiKey, act: Callable[..., _T], *values: object) -> _T:
        """Return the result of a call on a thread, once the key has a turn."""
        async with self.turn(key):
            return await to_thread.run_sync(partial(act, *values), limiter=self.limiter)
