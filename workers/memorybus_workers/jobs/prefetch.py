"""The recall job: wait until the session's events are applied, ask the provider, keep it warm."""

import logging
from collections.abc import Callable, Sequence

import msgspec
from memorybus import scripts
from memorybus.clock import Clock
from memorybus.fence import escape, line
from memorybus.keys import Keys
from memorybus.recall import RecalledItem, Want, WarmResult
from memorybus.settings import Settings
from memorybus_providers.base import MemoryProvider, RecallContext, RecallScope, Recollection
from redis import Redis

_log = logging.getLogger("memorybus")

_FIRST_LOOK = 0.002
_LAST_LOOK = 0.05
_ROUNDS = 5
_STALLED = 0.25
"""Share of `recall_wait` after which a provider that applies nothing is not waited for."""

_ERROR_LENGTH = 300


class Recaller:
    """Runs recall jobs on provider instances that stay open. Belongs to one process.

    Args:
        redis: the log's Redis.
        settings: see `Settings`.
        clock: time.
        opened: returns the open instance of a provider's name.
        forget: closes it, after an error.
    """

    def __init__(
        self,
        redis: Redis,
        settings: Settings,
        clock: Clock,
        opened: Callable[[str], MemoryProvider],
        forget: Callable[[str], None],
    ) -> None:
        """Keep what every job needs."""
        self._redis = redis
        self._settings = settings
        self._clock = clock
        self._opened = opened
        self._forget = forget
        self._keys = Keys(settings.namespace)

    def warm(self, slot: str, provider: str) -> None:
        """Answer the newest request of a slot; if a newer one came meanwhile, that too.

        Raises:
            Exception: whatever the provider raises; nothing is cached then, an error is not "no
                memories".
        """
        for _ in range(_ROUNDS):
            request = self._request(slot)
            if request is None or not self._answer(slot, provider, *request):
                return

    def _request(self, slot: str) -> tuple[int, Want] | None:
        generation, body = self._redis.hmget(self._keys.want(slot), "g", "r")
        if generation is None or body is None:
            return None
        return int(generation), msgspec.json.decode(body, type=Want)

    def _answer(self, slot: str, provider: str, generation: int, want: Want) -> bool:
        """Store the answer to one request; return whether a newer one waits."""
        self._await_applied(provider, want)
        try:
            result = msgspec.msgpack.encode(self._recall(provider, want))
        except Exception as error:
            self._forget(provider)  # interrupted anywhere: the next job opens another
            self._tell_error(slot, provider, error)
            raise
        ttl = round(self._settings.recall_ttl * 1000)
        call = scripts.warm(self._keys, slot, provider, generation, result, ttl)
        _, wanted = scripts.run(self._redis, call)
        return int(wanted) > generation

    def _await_applied(self, provider: str, want: Want) -> None:
        """Wait, bounded, until the provider has what the session published (read your writes)."""
        if not want.positions:
            return
        now = self._clock.monotonic()
        deadline, pause, before = now + self._settings.recall_wait, _FIRST_LOOK, 0
        stalled = now + self._settings.recall_wait * _STALLED
        while (missing := self._missing(provider, want)) and now < min(deadline, stalled):
            if missing != before:  # it moves: worth the whole wait, else other sessions' turn
                before, stalled = missing, now + self._settings.recall_wait * _STALLED
            self._clock.sleep(pause)
            pause = min(_LAST_LOOK, pause * 1.5)
            now = self._clock.monotonic()

    def _missing(self, provider: str, want: Want) -> int:
        """Return how many of the wanted events are not applied yet."""
        with self._redis.pipeline(transaction=False) as pipe:
            for partition in want.positions:
                pipe.hget(self._keys.lane(partition, provider), "n")
            applied = [int(n or 0) for n in pipe.execute()]
        wanted = want.positions.values()
        return sum(max(0, w - n) for n, w in zip(applied, wanted, strict=True))

    def _recall(self, provider: str, want: Want) -> WarmResult:
        scope = RecallScope(want.agent, want.user, want.workspace)
        deadline = self._settings.recall_timeout / 2
        context = RecallContext(scope, want.session, want.budget, deadline)
        found = self._opened(provider).prefetch(want.query, context)
        return rendered(found, want, provider)

    def _tell_error(self, slot: str, provider: str, error: Exception) -> None:
        """Let a recall that waits for its answer know why there is none."""
        _log.warning("recall from %s failed: %s", provider, error)
        message = f"{type(error).__name__}: {error}"[:_ERROR_LENGTH]
        if self._redis.exists(self._keys.want(slot)):
            self._redis.hset(self._keys.want(slot), f"e:{provider}", message)


def rendered(found: Sequence[Recollection], want: Want, provider: str) -> WarmResult:
    """Escape and render recollections, as many as the budget can hold (best first)."""
    lines: list[str] = []
    items: list[RecalledItem] = []
    room = want.budget
    for one in found:
        text = line(one.text, at=one.at, speaker=one.speaker)
        if len(text) >= room:
            continue
        room -= len(text) + 1
        lines.append(text)
        if want.detail:
            items.append(RecalledItem(provider, escape(one.text), one.session, one.at or None))
    return WarmResult(tuple(lines), tuple(items))
