"""One rebuild or verification of a provider at a time, and whether the one that began still lives.

Who works keeps an entry that expires. A hold of an instance without it was left by a command that
was killed: workers let the one that serves go on, and the same command goes on with the rest.
"""

import os
import re
import socket
from collections.abc import Callable, Iterable
from typing import Any, Self

import msgspec
from redis import Redis
from redis.exceptions import RedisError

from memorybus.errors import MemoryBusError
from memorybus.ids import NewId, new_id
from memorybus.instances import Hold
from memorybus.keys import Keys
from memorybus.links import translated

LIFE = 60
"""Seconds for which an entry stays without `keep`: longer than any single step of a rebuild."""

_PREPARED = re.compile(r"(?:rebuild|rollback|verification) of .+: (.+) is prepared")


class RebuildRuns(MemoryBusError):
    """Another command rebuilds or verifies the provider now, or may do so."""


class Working(msgspec.Struct, frozen=True):
    """Who works on a provider's instances: a command, and the process that runs it."""

    id: str
    what: str
    by: str
    host: str
    pid: int


class RebuildLock:
    """Belongs to one thread; a ``with`` block takes and releases it.

    Args:
        redis: the log's Redis.
        keys: the namespace's.
        provider: whose instances.
        what: the command, in a word.
        by: who runs it.
        make_id: ids.
    """

    def __init__(
        self,
        redis: Redis,
        keys: Keys,
        provider: str,
        what: str,
        by: str,
        make_id: NewId = new_id,
    ) -> None:
        """Take nothing yet."""
        self._redis = redis
        self._key = keys.rebuilding(provider)
        self._provider = provider
        self._mine = Working(make_id(), what, by, socket.gethostname(), os.getpid())

    def __enter__(self) -> Self:
        """Take it.

        Raises:
            RebuildRuns: another command has it.
            LogUnavailable: Redis is away.
        """
        body = msgspec.json.encode(self._mine)
        while not self._asked(lambda: self._redis.set(self._key, body, nx=True, ex=LIFE)):
            known = _read(self._asked(lambda: self._redis.get(self._key)))
            if known is not None and not _is_dead(known):
                raise RebuildRuns(
                    f"a {known.what} of {self._provider} runs already: process {known.pid} on "
                    f"{known.host}, of {known.by}; wait for it, or end it"
                )
            self._asked(lambda: self._redis.delete(self._key))
        return self

    def keep(self) -> None:
        """Show that we live; due within `LIFE` seconds of the last time.

        Raises:
            RebuildRuns: it was not done in time: what we held may go on, or be another's.
            LogUnavailable: Redis is away.
        """
        if _read(self._asked(lambda: self._redis.get(self._key))) != self._mine:
            raise RebuildRuns(
                f"this {self._mine.what} of {self._provider} stood still for over {LIFE} s, so it "
                f"counts as dead, and what it held goes on; begin again: the same command"
            )
        body = msgspec.json.encode(self._mine)
        self._asked(lambda: self._redis.set(self._key, body, ex=LIFE))

    def __exit__(self, *_: object) -> None:
        """Release it; without Redis it expires."""
        try:
            known = _read(self._redis.get(self._key))
            if known == self._mine:
                self._redis.delete(self._key)
        except (RedisError, OSError):
            return

    def _asked(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except (RedisError, OSError) as error:
            raise translated(error, self._key) from error


def held_reason(what: str, provider: str, candidate: str) -> str:
    """Return the reason for which a command holds instances: who reads it knows what was begun."""
    return f"{what} of {provider}: {candidate} is prepared"


def prepared(hold: Hold | None) -> str:
    """Return the copy for which a command holds an instance; "" if no such command does."""
    found = _PREPARED.fullmatch(hold.reason) if hold else None
    return found[1] if found else ""


def at_work(redis: Redis, keys: Keys, providers: Iterable[str]) -> dict[str, Working]:
    """Return which providers are rebuilt or verified by a command that still lives.

    Raises:
        LogUnavailable: Redis is away.
    """
    names = list(providers)
    try:
        with redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.get(keys.rebuilding(name))
            bodies = pipe.execute()
    except (RedisError, OSError) as error:
        raise translated(error, "rebuilds") from error
    found = {name: _read(body) for name, body in zip(names, bodies, strict=True)}
    return {name: one for name, one in found.items() if one is not None and not _is_dead(one)}


def _read(body: Any) -> Working | None:
    try:
        return None if body is None else msgspec.json.decode(body, type=Working)
    except msgspec.MsgspecError:
        return None


def _is_dead(known: Working) -> bool:
    """Say whether its process is known to be gone: only of this host can that be seen."""
    if known.host != socket.gethostname():
        return False
    try:
        os.kill(known.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
