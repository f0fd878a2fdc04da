"""Runs coroutines in a private event loop in its own thread, for callers without an event loop."""

import asyncio
import threading
from collections.abc import Awaitable, Iterable
from typing import TypeVar

_T = TypeVar("_T")

_END_SECONDS = 2.0
"""Seconds that cancelled coroutines have to end."""


class PrivateLoop:
    """Awaits coroutines for any thread. The loop starts with the first one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def wait_for(self, waiting: Awaitable[_T], deadline: float) -> _T:
        """Return the result of an awaitable; cancel it if it takes more than `deadline` seconds.

        Raises:
            TimeoutError: it took longer.
            Exception: any error that the awaitable raises.
        """
        future = asyncio.run_coroutine_threadsafe(_await(waiting), self._started_loop())
        try:
            return future.result(deadline)
        except TimeoutError:
            future.cancel()
            raise

    def close(self) -> None:
        """Stop the loop and cancel what still runs; safe to call twice."""
        with self._lock:
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(_END_SECONDS)

    def _started_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run, args=(self._loop,), name=f"{self._name}-loop", daemon=True
                )
                self._thread.start()
            return self._loop


async def _await(waiting: Awaitable[_T]) -> _T:
    return await waiting


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, then cancel its remaining tasks."""
    try:
        loop.run_forever()
        loop.run_until_complete(_cancel_all(asyncio.all_tasks(loop)))
    finally:
        loop.close()


async def _cancel_all(tasks: Iterable["asyncio.Task[object]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
