"""A private event loop in a thread of its own: coroutines for callers that have none."""

import asyncio
import threading
from collections.abc import Awaitable, Iterable
from typing import TypeVar

_T = TypeVar("_T")

_ENDING = 2.0
"""Seconds that cancelled coroutines have to end."""


class PrivateLoop:
    """Awaits what any thread hands it. The loop starts with the first coroutine."""

    def __init__(self, name: str) -> None:
        """Name the loop's thread after an instance."""
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def awaited(self, waiting: Awaitable[_T], deadline: float) -> _T:
        """Return what an awaitable gives within `deadline` seconds; then it is cancelled.

        Raises:
            TimeoutError: it took longer.
            Exception: whatever the awaitable raises.
        """
        future = asyncio.run_coroutine_threadsafe(_awaited(waiting), self._running())
        try:
            return future.result(deadline)
        except TimeoutError:
            future.cancel()
            raise

    def close(self) -> None:
        """Stop the loop, cancelling what still runs; safe to call twice."""
        with self._lock:
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(_ENDING)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run, args=(self._loop,), name=f"{self._name}-loop", daemon=True
                )
                self._thread.start()
            return self._loop


async def _awaited(waiting: Awaitable[_T]) -> _T:
    return await waiting


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, then cancel what it still has."""
    try:
        loop.run_forever()
        loop.run_until_complete(_cancelled(asyncio.all_tasks(loop)))
    finally:
        loop.close()


async def _cancelled(tasks: Iterable["asyncio.Task[object]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
