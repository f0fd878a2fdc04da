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
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.config.settings import Settings
from memorybus.events import Scope, SessionRef

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _of_bus(
    method: Callable[Concatenate[MemoryBus, _P], _T],
) -> Callable[Concatenate[AsyncMemoryBus, _P], Coroutine[Any, Any, _T]]:
    """Return a bus's method as one of `AsyncMemoryBus`."""

    @wraps(method)
    async def call(bus: AsyncMemoryBus, /, *args: _P.args, **options: _P.kwargs) -> _T:
        return await asyncio.to_thread(method, bus.sync, *args, **options)

    return call


def _of_session(
    method: Callable[Concatenate[Session, _P], _T],
) -> Callable[Concatenate[AsyncSession, _P], Coroutine[Any, Any, _T]]:
    """Return a session's method as one of `AsyncSession`."""

    @wraps(method)
    async def call(session: AsyncSession, /, *args: _P.args, **options: _P.kwargs) -> _T:
        return await asyncio.to_thread(method, session.sync, *args, **options)

    return call


def _to_session(
    method: Callable[Concatenate[Session, _P], Session],
) -> Callable[Concatenate[AsyncSession, _P], Coroutine[Any, Any, AsyncSession]]:
    """Return a session's method that leads to another session as one of `AsyncSession`."""

    @wraps(method)
    async def call(session: AsyncSession, /, *args: _P.args, **options: _P.kwargs) -> AsyncSession:
        return AsyncSession(await asyncio.to_thread(method, session.sync, *args, **options))

    return call


def _opens(
    method: Callable[Concatenate[MemoryBus, _P], Session],
) -> Callable[Concatenate[AsyncMemoryBus, _P], Coroutine[Any, Any, AsyncSession]]:
    """Return a bus's method that makes a session as one of `AsyncMemoryBus`."""

    @wraps(method)
    async def call(bus: AsyncMemoryBus, /, *args: _P.args, **options: _P.kwargs) -> AsyncSession:
        return AsyncSession(await asyncio.to_thread(method, bus.sync, *args, **options))

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

    turn_started = _of_session(Session.turn_started)
    turn_completed = _of_session(Session.turn_completed)
    memory_written = _of_session(Session.memory_written)
    compressing = _of_session(Session.compressing)
    delegated = _of_session(Session.delegated)
    ended = _of_session(Session.ended)
    publish = _of_session(Session.publish)

    branch = _to_session(Session.branch)
    compressed = _to_session(Session.compressed)
    switched_to = _to_session(Session.switched_to)
    undo = _to_session(Session.undo)

    queue_prefetch = _of_session(Session.queue_prefetch)
    warm_up = _of_session(Session.warm_up)
    prefetch = _of_session(Session.prefetch)
    warm_lines = _of_session(Session.warm_lines)

    system_prompt = _of_session(Session.system_prompt)
    ask_first = _of_session(Session.ask_first)
    contributions = _of_session(Session.contributions)
    call_tool = _of_session(Session.call_tool)


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

    session = _opens(MemoryBus.session)
    adopt = _opens(MemoryBus.adopt)
    publish = _of_bus(MemoryBus.publish)
    flush = _of_bus(MemoryBus.flush)
    hurry = _of_bus(MemoryBus.hurry)
    recall = _of_bus(MemoryBus.recall)
    tools = _of_bus(MemoryBus.tools)
    close = _of_bus(MemoryBus.close)

    async def __aenter__(self) -> Self:
        """Return the bus."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the bus."""
        await self.close()
