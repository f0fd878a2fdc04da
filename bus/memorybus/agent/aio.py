"""The bus for asyncio: a thin facade, every call on a thread."""

from __future__ import annotations

import asyncio
from typing import Any, Self

from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.config.settings import Settings
from memorybus.recall.live import Recall
from memorybus.receipt import Level
from memorybus.registry.tools import OfferedTools


class AsyncMemoryBus:
    """`MemoryBus` for asyncio: the same methods, each run on a thread.

    ``async with AsyncMemoryBus.connect() as bus: session = await bus.session("s")``
    """

    def __init__(self, bus: MemoryBus) -> None:
        """Wrap a bus; `close` closes it."""
        self._bus = bus

    @classmethod
    def connect(cls, target: Settings | str | None = None) -> AsyncMemoryBus:
        """See `MemoryBus.connect`."""
        return cls(MemoryBus.connect(target))

    async def session(self, session_id: str | None = None, **options: Any) -> AsyncSession:
        """See `MemoryBus.session`."""
        return AsyncSession(await asyncio.to_thread(self._bus.session, session_id, **options))

    async def flush(self, level: Level = "logged", timeout: float = 10.0) -> bool:
        """See `MemoryBus.flush`."""
        return await asyncio.to_thread(self._bus.flush, level, timeout)

    async def recall(self, question: str, **options: Any) -> Recall:
        """See `MemoryBus.recall`."""
        return await asyncio.to_thread(self._bus.recall, question, **options)

    async def tools(self) -> OfferedTools:
        """See `MemoryBus.tools`."""
        return await asyncio.to_thread(self._bus.tools)

    async def close(self) -> None:
        """See `MemoryBus.close`."""
        await asyncio.to_thread(self._bus.close)

    async def __aenter__(self) -> Self:
        """Return the bus."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the bus."""
        await self.close()


class AsyncSession:
    """A `Session` for asyncio: every method of it, awaited."""

    def __init__(self, session: Session) -> None:
        """Wrap a session."""
        self.sync = session

    def __getattr__(self, name: str) -> Any:
        """Return the session's method, run on a thread; sessions come back wrapped."""
        method = getattr(self.sync, name)
        if not callable(method):
            return method

        async def call(*args: Any, **options: Any) -> Any:
            result = await asyncio.to_thread(method, *args, **options)
            return AsyncSession(result) if isinstance(result, Session) else result

        return call
