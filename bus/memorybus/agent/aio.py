"""The bus for asyncio: each method that writes or waits runs on a thread, and is awaited.

Each method here is built from the method of the bus or session that it wraps, so that it has the
same arguments and the same result. Mypy reports a wrong name or argument, and a call that is not
awaited. Without mypy, Python itself warns of such a call at once (`RuntimeWarning`: … was never
awaited). Until a call is awaited, nothing is published.
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
    """An asyncio wrapper of a bus or a session, which is its `sync`."""

    @property
    def sync(self) -> _S_co: ...


def _as_async(
    method: Callable[Concatenate[_S_co, _P], _T],
) -> Callable[Concatenate[_Facade[_S_co], _P], Coroutine[Any, Any, _T]]:
    @wraps(method)
    async def call(facade: _Facade[_S_co], /, *args: _P.args, **options: _P.kwargs) -> _T:
        return await asyncio.to_thread(method, facade.sync, *args, **options)

    return call


def _as_async_session(
    method: Callable[Concatenate[_S_co, _P], Session],
) -> Callable[Concatenate[_Facade[_S_co], _P], Coroutine[Any, Any, AsyncSession]]:
    """Return a method that returns a session as an asyncio method that returns its wrapper."""

    @wraps(method)
    async def call(facade: _Facade[_S_co], /, *args: _P.args, **options: _P.kwargs) -> AsyncSession:
        return AsyncSession(await asyncio.to_thread(method, facade.sync, *args, **options))

    return call


class AsyncSession:
    """A `Session` for asyncio: it has the methods that write or wait, which must be awaited.

    Attributes:
        sync: the session itself, for properties and calls that need no thread.
    """

    def __init__(self, session: Session) -> None:
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
        """The owner of the session."""
        return self.sync.scope

    turn_started = _as_async(Session.turn_started)
    turn_completed = _as_async(Session.turn_completed)
    memory_written = _as_async(Session.memory_written)
    compressing = _as_async(Session.compressing)
    delegated = _as_async(Session.delegated)
    ended = _as_async(Session.ended)
    publish = _as_async(Session.publish)

    branch = _as_async_session(Session.branch)
    compressed = _as_async_session(Session.compressed)
    switched_to = _as_async_session(Session.switched_to)
    undo = _as_async_session(Session.undo)

    queue_prefetch = _as_async(Session.queue_prefetch)
    warm_up = _as_async(Session.warm_up)
    prefetch = _as_async(Session.prefetch)
    recalled_lines = _as_async(Session.recalled_lines)
    shown = _as_async(Session.shown)

    system_prompt = _as_async(Session.system_prompt)
    contributions = _as_async(Session.contributions)
    call_tool = _as_async(Session.call_tool)


class AsyncMemoryBus:
    """`MemoryBus` for asyncio: it has the methods that write or wait, which must be awaited.

    ``async with AsyncMemoryBus.connect() as bus: session = await bus.session("s")``

    Attributes:
        sync: the bus itself, for properties and calls that need no thread.
    """

    def __init__(self, bus: MemoryBus) -> None:
        self.sync = bus

    @classmethod
    def connect(cls, target: Settings | str | None = None) -> AsyncMemoryBus:
        """See `MemoryBus.connect`; it only opens the spool, and so is not awaited."""
        return cls(MemoryBus.connect(target))

    session = _as_async_session(MemoryBus.session)
    adopt = _as_async_session(MemoryBus.adopt)
    publish = _as_async(MemoryBus.publish)
    flush = _as_async(MemoryBus.flush)
    hurry = _as_async(MemoryBus.hurry)
    insights = _as_async(MemoryBus.insights)
    recall = _as_async(MemoryBus.recall)
    tools = _as_async(MemoryBus.tools)
    close = _as_async(MemoryBus.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
