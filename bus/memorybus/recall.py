"""Recall: what a session asks for, and the warm results it reads (design, part 5).

A request is a value: the session's newest one wins. A result is stored escaped and rendered, so
that reading it is one round trip and one concatenation. No failure and no delay of Redis reaches
the agent from here: `WarmCache.read` answers within its deadline, if need be with nothing (G9).
"""

import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from memorybus.clock import Clock
from memorybus.errors import LogError, LogUnavailable
from memorybus.events import Scope, SessionRef
from memorybus.fence import build_block
from memorybus.flusher import LogState
from memorybus.keys import Keys, partition_of, recall_slot, session_key, store_key
from memorybus.settings import Settings

_log = logging.getLogger("memorybus")

GENERATION = b"g:"
"""Before a provider's name in a warm hash: which request its result answers."""

_LEAST = 0.001
_NEARLY = 0.95
_TRIVIAL = re.compile(
    r"(?:ok(?:ay)?|k|yes|no|yep|yup|nope|sure|thanks?|thank you|thx|ty|cool|nice|great|good|"
    r"perfect|got it|go on|go ahead|continue|next|done|stop|hi|hello|hey|bye|lol|hm+|y|n)"
    r"[\s.!?…]*",
    re.IGNORECASE,
)


def is_trivial(query: str) -> bool:
    """Say whether a prompt asks nothing that memory could answer: "ok", "/help", blanks."""
    text = query.strip()
    return not text or text.startswith("/") or _TRIVIAL.fullmatch(text) is not None


class Want(msgspec.Struct, frozen=True, omit_defaults=True):
    """A recall that a session asks for (stored as JSON).

    Attributes:
        query: the question or prompt.
        agent: whose memories: this agent's; None for everyone's (an operator).
        user: and this person's; None for everyone's.
        workspace: and this workspace's; None for all.
        session: who asks, or None.
        budget: characters of lines a provider may return.
        detail: also keep the single items, not only rendered lines (the operator's recall).
        positions: dense numbers by partition that should be applied first (read your writes).
    """

    query: str
    agent: str | None = None
    user: str | None = None
    workspace: str | None = None
    session: SessionRef | None = None
    budget: int = 2_000
    detail: bool = False
    positions: dict[int, int] = {}


class RecalledItem(msgspec.Struct, frozen=True):
    """One remembered thing: escaped, otherwise verbatim. ``at`` is milliseconds, or None."""

    provider: str
    text: str
    session: str
    at: int | None


class WarmResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """A provider's answer as it is stored (msgpack): rendered lines, and items if asked for."""

    lines: tuple[str, ...] = ()
    items: tuple[RecalledItem, ...] = ()


_result_decoder = msgspec.msgpack.Decoder(WarmResult)


class WarmAsk(msgspec.Struct, frozen=True):
    """Ask the workers for a recall.

    Attributes:
        slot: the session's slot.
        sequence: the spool's sequence that must be in the log before.
        want: the request; its positions are filled in when it is asked.
        partitions: those the session writes to.
    """

    slot: str
    sequence: int
    want: Want
    partitions: tuple[int, ...] = ()


class CarryAsk(msgspec.Struct, frozen=True):
    """Copy warm results to the slot of the session that continues the conversation."""

    slot: str
    sequence: int
    origin: str


def wanted(scope: Scope, session: SessionRef, query: str, budget: int) -> Want:
    """Return a session's request: within its own scope, and no wider."""
    return Want(
        query=query,
        agent=scope.agent,
        user=scope.user,
        workspace=scope.workspace or None,
        session=session,
        budget=budget,
    )


def written_by(scope: Scope, session: SessionRef, partitions: int) -> tuple[int, ...]:
    """Return the partitions that a session's events and its stores' go to."""
    keys = (session_key(session.root), store_key("memory", scope), store_key("user", scope))
    return tuple({partition_of(key, partitions) for key in keys})


def slot_of(scope: Scope, session: SessionRef) -> str:
    """Return a session's slot; a new epoch has a new one, carried over if it continues."""
    return recall_slot(scope, f"{session.epoch}:{session.id}")


class WarmCache:
    """Reads warm results. Safe to call from any thread; one connection, one round trip.

    Args:
        settings: see `Settings`; `prefetch_deadline` bounds every read.
        clock: time.
        log_state: what the flusher knows of Redis.
    """

    def __init__(self, settings: Settings, clock: Clock, log_state: Callable[[], LogState]) -> None:
        """Read nothing until `connect`."""
        self.wants_connection = True
        self._limited: dict[Any, float] = {}
        self._log_state = log_state
        self._clock = clock
        self._connected = threading.Event()
        self._settings = settings
        self._keys = Keys(settings.namespace)
        self._lock = threading.Lock()
        self._redis: Any = None
        self._pid = os.getpid()
        self.failures = 0

    def block(self, slot: str, fallback: str, budget: int) -> str:
        """Return the memory block of a slot, or of the session it continues; "" if none is warm.

        Args:
            slot: the session's own.
            fallback: the slot of the session before, or "".
            budget: characters of the whole block.
        """
        results = self.read([slot, fallback] if fallback else [slot])
        sections = [(name, results[name].lines) for name in self._ordered(results)]
        return build_block(sections, budget) if sections else ""

    def read(self, slots: Sequence[str]) -> dict[str, WarmResult]:
        """Return the warm results of the first slot that has any, by provider.

        Empty if there are none, or none in time (counted in `failures`).
        """
        self._check_process()
        until = self._clock.monotonic() + self._settings.prefetch_deadline
        if self._redis is None and self._log_state() != "down":
            self._connected.wait(self._settings.prefetch_deadline)  # the flusher connects
        if not self._lock.acquire(timeout=max(0.0, until - self._clock.monotonic())):
            self.failures += 1
            return {}
        try:
            found = self._fields([self._keys.warm(slot) for slot in slots], until)
            fields = next((fields for fields in found if fields), [])
            return warm_results(zip(fields[::2], fields[1::2], strict=True))
        except (LogError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            self.failures += 1
            _log.debug("prefetch: %s", error)
            return {}
        finally:
            self._lock.release()

    def _fields(self, keys: Sequence[str], until: float) -> list[list[bytes]]:
        """Read some hashes in one round trip, by `until`: names and values by turns."""
        from redis.exceptions import RedisError

        from memorybus.cluster import home_of
        from memorybus.links import translated

        redis = self._redis
        if redis is None:
            raise LogUnavailable(f"{keys[0]}: not connected")
        try:
            # The connection itself: a client's bookkeeping costs a tenth of this whole call.
            connections: list[Any] = [home_of(redis, key).connection for key in keys]
            for connection, key in zip(connections, keys, strict=True):
                self._limit(connection, until - self._clock.monotonic())
                connection.send_command("HGETALL", key)
            return [connection.read_response() for connection in connections]
        except (RedisError, OSError) as error:
            self._drop_connection()
            self.wants_connection = True
            raise translated(error, keys[0]) from error

    def _limit(self, connection: Any, left: float) -> None:
        """Let the socket wait for what is left; the whole deadline if hardly any is gone."""
        whole = self._settings.prefetch_deadline
        wanted = whole if left > whole * _NEARLY else max(_LEAST, left)
        if wanted != self._limited.get(connection):
            connection.update_current_socket_timeout(wanted)
            self._limited[connection] = wanted

    def connect(self) -> None:
        """Connect if need be, on the flusher's thread; the agent's only reads.

        Raises:
            LogUnavailable: no connection.
        """
        from memorybus.links import connect_redis

        if not self.wants_connection:
            return
        self._check_process()
        redis = connect_redis(self._settings, single=True)
        with self._lock:
            self._limited.clear()
            self._redis, self.wants_connection = redis, False
            self._connected.set()

    def _check_process(self) -> None:
        """After a fork: connection and lock are the parent's; its replies would cross ours."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._redis, self._lock, self.wants_connection = None, threading.Lock(), True
            self._connected = threading.Event()

    def _drop_connection(self) -> None:
        """A reply that came too late must not be read as the next one's."""
        self._connected.clear()
        if self._redis is not None:
            self._redis.close()
            self._redis = None

    def _ordered(self, names: Iterable[str]) -> list[str]:
        order = {name: i for i, name in enumerate(self._settings.providers)}
        return sorted(names, key=lambda name: (order.get(name, len(order)), name))

    def close(self) -> None:
        """Close the connection."""
        self._check_process()
        with self._lock:
            self._drop_connection()


def warm_results(fields: Iterable[tuple[bytes, bytes]]) -> dict[str, WarmResult]:
    """Read the fields of a warm hash, pairs of name and value."""
    return {
        name.decode(): _result_decoder.decode(body)
        for name, body in fields
        if not name.startswith(GENERATION)
    }


def items_of(results: Mapping[str, WarmResult], names: Sequence[str]) -> tuple[RecalledItem, ...]:
    """Return the items of several providers' results, in the order of `names`."""
    return tuple(item for name in names if name in results for item in results[name].items)
