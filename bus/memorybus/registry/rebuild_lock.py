"""A lock that admits one rebuild or verification of a provider at a time.

The lock is an entry in Redis that expires, so it shows whether its owner lives. A pause without
such an entry was left by a command that was killed: workers resume the instance that serves, and
the same command, run again, continues with the rest.

A command may be suspended just before a write until its entry has expired. So each of its changes
to instances checks, in one step, a fence: a second entry in the slot of each of their hashes, so
that one script sees both, also in a Redis Cluster.
"""

import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated, Self

import msgspec
from redis import Redis

from memorybus.errors import LogError, MemoryBusError
from memorybus.ids import NewId, new_id
from memorybus.redis.connect import redis_errors
from memorybus.redis.hashes import decode_or_none
from memorybus.redis.keys import Keys
from memorybus.redis.locks import ExpiringLock

LOCK_SECONDS = 60
"""Seconds after which an entry expires without `keep`: more than any single step takes."""

FENCE_SECONDS = LOCK_SECONDS - 10
"""Seconds after which fences expire: before the entry, so that nobody changes anything unseen."""


class RebuildRuns(MemoryBusError):
    """Another command rebuilds or verifies the provider now, or may do so."""


_Pid = Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]
"""A process id. For 0 or less the system would answer for a process group, which always lives."""


class RebuildCommand(msgspec.Struct, frozen=True):
    """The command that works on a provider's instances, and the process that runs it."""

    id: str
    what: str
    by: str
    host: str
    pid: _Pid


class RebuildLock:
    """The lock. Belongs to one thread; a ``with`` block takes and releases it."""

    def __init__(
        self,
        redis: Redis,
        keys: Keys,
        provider: str,
        what: str,
        by: str,
        make_id: NewId = new_id,
    ) -> None:
        self._redis = redis
        self._keys = keys
        self._provider = provider
        self._mine = RebuildCommand(make_id(), what, by, socket.gethostname(), os.getpid())
        fences = [self.fence_for(key) for key in (keys.instances, keys.live, keys.pauses)]
        # The main entry comes last and stays longer: while a fence stands, others see us at work.
        lives = dict.fromkeys(fences, FENCE_SECONDS) | {keys.rebuilding(provider): LOCK_SECONDS}
        self._locks = {
            entry: ExpiringLock(redis, entry, self.token, seconds * 1000)
            for entry, seconds in lives.items()
        }

    @property
    def token(self) -> bytes:
        return msgspec.json.encode(self._mine)

    def fence_for(self, key: str) -> str:
        return self._keys.fence(key, self._provider)

    def __enter__(self) -> Self:
        """Take every entry; no other command may have one of them."""
        try:
            for entry in reversed(self._locks):
                self._take(entry)
            self.keep()
        except BaseException:
            self._release()
            raise
        return self

    def keep(self) -> None:
        """Prolong the lock; call it within `FENCE_SECONDS` of the last time."""
        if not all(lock.prolong() for lock in self._locks.values()):
            raise self.lost_error()

    def lost_error(self) -> RebuildRuns:
        return RebuildRuns(
            f"this {self._mine.what} of {self._provider} was suspended for over {FENCE_SECONDS} s, "
            f"or Redis lost its lock. It has ended without further changes, the lanes that it "
            f"paused continue, and another command may be at work. See: memorybus rebuild ls. Then "
            f"run the same command again"
        )

    def __exit__(self, *_: object) -> None:
        """Release it; without Redis it expires."""
        self._release()

    def _take(self, entry: str) -> None:
        while not self._locks[entry].take():
            holder = self._locks[entry].holder()
            command = decode_or_none(holder, RebuildCommand)
            if command is not None and not _is_dead(command):
                raise RebuildRuns(
                    f"a {command.what} of {self._provider} runs already: process {command.pid} on "
                    f"{command.host}, of {command.by}; wait for it, or end it"
                )
            if holder is not None:
                ExpiringLock(self._redis, entry, holder, 0).end()

    def _release(self) -> None:
        with suppress(LogError):
            for lock in self._locks.values():
                lock.end()


def running_rebuilds(
    redis: Redis, keys: Keys, providers: Iterable[str]
) -> dict[str, RebuildCommand]:
    """Return which providers are rebuilt or verified by a command that still lives."""
    names = list(providers)
    with redis_errors("rebuilds"), redis.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.get(keys.rebuilding(name))
        bodies = pipe.execute()
    commands = {
        name: decode_or_none(body, RebuildCommand) for name, body in zip(names, bodies, strict=True)
    }
    return {
        name: command
        for name, command in commands.items()
        if command is not None and not _is_dead(command)
    }


def _is_dead(command: RebuildCommand) -> bool:
    """Return whether its process is known to have ended; that can be seen only on this host."""
    if command.host != socket.gethostname():
        return False
    try:
        os.kill(command.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
