"""The bus for asyncio: the same methods, each run on a thread and awaited.

A method here is made of the one it stands for, so that it has the very same arguments and result:
a wrong name or argument is an error of mypy, and so is a call that nobody awaits. Where mypy is
not run, Python itself warns of the latter (`RuntimeWarning`: … was never awaited), at once: until
it is awaited, nothing has been published.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.config.settings import Settings
from memorybus.events import Scope, SessionRef

_P = ParamSpec("_P")
_S_co = TypeVar("_S_co", covariant=True)
_T = TypeVar("_T")


class _Facade(Protocol[_S_co]):
    """What stands for a bus or a session, which is its `sync`."""

    @property
    def sync(self) -> _S_co: ...


def _awaited(
    method: Callable[Concatenate[_S_co, _P], _T],
) -> Callable[Concatenate[_Facade[_S_co], _P], Coroutine[Any, Any, _T]]:
    """Return a method of a bus or a session as one of its facade."""

    @wraps(method)
    async def call(facade: _Facade[_S_co], /, *args: _P.args, **options: _P.kwargs) -> _T:
        return await asyncio.to_thread(method, facade.sync, *args, **options)

    return call


def _awaited_session(
    method: Callable[Concatenate[_S_co, _P], Session],
) -> Callable[Concatenate[_Facade[_S_co], _P], Coroutine[Any, Any, AsyncSession]]:
    """Return a method that leads to a session as one that leads to its facade."""

    @wraps(method)
    async def call(facade: _Facade[_S_co], /, *args: _P.args, **options: _P.kwargs) -> AsyncSession:
        return AsyncSession(await asyncio.to_thread(method, facade.sync, *args, **options))

    return call


class AsyncSession:
    """A `Session` for asyncio: every method of it, awaited.

    Attributes:
        sync: the session itself, for what needs no thread.
    """

    def __init__(self, session: Session) -> None:
        """Wrap a session."""
        self.sync = session

    @property
    def id(self) -> str:
        """The session's id."""
        return self.sync.id

    @property
    def ref(self) -> SessionRef:
        """Its place in the lineage."""
        return self.sync.ref

    @property
    def scope(self) -> Scope:
        """Who it belongs to."""
        return self.sync.scope

    turn_started = _awaited(Session.turn_started)
    turn_completed = _awaited(Session.turn_completed)
    memory_written = _awaited(Session.memory_written)
    compressing = _awaited(Session.compressing)
    delegated = _awaited(Session.delegated)
    ended = _awaited(Session.ended)
    publish = _awaited(Session.publish)

    branch = _awaited_session(Session.branch)
    compressed = _awaited_session(Session.compressed)
    switched_to = _awaited_session(Session.switched_to)
    undo = _awaited_session(Session.undo)

    queue_prefetch = _awaited(Session.queue_prefetch)
    warm_up = _awaited(Session.warm_up)
    prefetch = _awaited(Session.prefetch)
    recalled_lines = _awaited(Session.recalled_lines)

    system_prompt = _awaited(Session.system_prompt)
    contributions = _awaited(Session.contributions)
    call_tool = _awaited(Session.call_tool)


class AsyncMemoryBus:
    """`MemoryBus` for asyncio: the same methods, awaited.

    ``async with AsyncMemoryBus.connect() as bus: session = await bus.session("s")``

    Attributes:
        sync: the bus itself, for what needs no thread.
    """

    def __init__(self, bus: MemoryBus) -> None:
        """Wrap a bus; `close` closes it."""
        self.sync = bus

    @classmethod
    def connect(cls, target: Settings | str | None = None) -> AsyncMemoryBus:
        """See `MemoryBus.connect`; it opens the spool, and needs no thread."""
        return cls(MemoryBus.connect(target))

    session = _awaited_session(MemoryBus.session)
    adopt = _awaited_session(MemoryBus.adopt)
    publish = _awaited(MemoryBus.publish)
    flush = _awaited(MemoryBus.flush)
    hurry = _awaited(MemoryBus.hurry)
    recall = _awaited(MemoryBus.recall)
    tools = _awaited(MemoryBus.tools)
    close = _awaited(MemoryBus.close)

    async def __aenter__(self) -> Self:
        """Return the bus."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the bus."""
        await self.close()
