"""The threads that call a slow provider for several keys at once.

A call that outlives its deadline cannot be stopped. Its thread is abandoned and another takes its
place; the event counts as hung, and what the call still returns is ignored. The instance stays open
until that call has returned.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import copy_context
from queue import SimpleQueue

import msgspec
from memorybus.clock import Clock
from memorybus.errors import ProviderHung
from memorybus.log.entry import LoggedEvent

from memorybus_workers.calls.thread_activity import ThreadActivity
from memorybus_workers.lanes.lane import Lane


class Withdrawn(BaseException):
    """Raised for a task that did not begin because its lane is given up: its event stays open."""


class Task(msgspec.Struct, frozen=True):
    """An event on its way through the pool."""

    lane: Lane  # the event's lane
    event: LoggedEvent  # the event to apply
    served: int  # how many calls had succeeded when the event was handed out
    probes: bool  # whether the call finds out if the backend works again
    # further turns of the event's key, in order, if one call is for several turns
    behind: tuple[LoggedEvent, ...] = ()

    @property
    def events(self) -> tuple[LoggedEvent, ...]:
        return (self.event, *self.behind)


class CallResult(msgspec.Struct, frozen=True):
    """A task that ended, with the error that it raised, or its hook's reply."""

    task: Task
    error: BaseException | None
    reply: str | None = None
    given_up: ThreadActivity | None = None  # the call, if it was abandoned
    took: float = 0.0  # how many seconds the call took


CallHook = Callable[[Task, ThreadActivity], str | None]


class PoolThread:
    """One thread and the call it is busy with."""

    def __init__(self, clock: Clock, run: Callable[["PoolThread"], None], name: str) -> None:
        self.activity = ThreadActivity(clock)
        self.task: Task | None = None
        self._thread = threading.Thread(
            target=copy_context().run, args=(run, self), name=name, daemon=True
        )
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()


class Pool:
    """A bounded number of threads, started when there is work for them."""

    def __init__(
        self, name: str, size: int, clock: Clock, call: CallHook, wake: Callable[[], None]
    ) -> None:
        self._name = name
        self._size = size
        self._clock = clock
        self._call = call
        self._wake = wake
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._done: deque[CallResult] = deque()
        self._threads: list[PoolThread] = []
        self._hung: list[PoolThread] = []
        self._lock = threading.Lock()
        self._calling = 0
        self._close: Callable[[], None] | None = None
        self.unfinished = 0  # tasks that were submitted and not collected

    def submit(self, task: Task) -> None:
        self.unfinished += 1
        self._tasks.put(task)
        if len(self._threads) < min(self._size, self.unfinished):
            self._start()

    def collect(self) -> Iterator[CallResult]:
        """Yield the tasks that ended; the next call yields those that the caller did not take."""
        while self._done:
            self.unfinished -= 1
            yield self._done.popleft()

    def watch(self, timeout: float) -> list[str]:
        """Abandon threads whose call has taken longer than `timeout`; return their events."""
        late = [
            (thread, thread.task)
            for thread in list(self._threads)
            if thread.activity.hanging_call(timeout)
        ]
        return [
            task.event.envelope.id
            for thread, task in late
            if task and self._abandon(thread, task, timeout)
        ]

    def activities(self) -> list[ThreadActivity]:
        return [thread.activity for thread in list(self._threads)]

    def take_hung(self) -> list["PoolThread"]:
        hung, self._hung = self._hung, []
        return hung

    def stop(self) -> None:
        for _ in self._threads:
            self._tasks.put(None)

    def release(self, close: Callable[[], None]) -> bool:
        """Begin no further call; return whether none is under way.

        If one is, the thread whose call is the last to return calls `close`.
        """
        with self._lock:
            self._close = close
            return not self._calling

    def _start(self) -> None:
        name = f"memorybus-{self._name}-{len(self._threads)}"
        self._threads.append(PoolThread(self._clock, self._run, name))

    def _abandon(self, thread: PoolThread, task: Task, timeout: float) -> bool:
        with self._lock:
            if thread.task is not task or not thread.activity.abandon(timeout):
                return False  # it has returned meanwhile
            self._threads.remove(thread)
            self._hung.append(thread)
            self._start()
        event_id = task.event.envelope.id
        error = ProviderHung(f"a call for event {event_id} was abandoned")
        self._finish(CallResult(task, error, given_up=thread.activity))
        return True

    def _finish(self, done: CallResult) -> None:
        self._done.append(done)
        self._wake()

    def _run(self, thread: PoolThread) -> None:
        while (task := self._tasks.get()) is not None and self._enter(thread, task):
            error: BaseException | None = None
            said: str | None = None
            begun = self._clock.monotonic()
            try:
                said = self._call(task, thread.activity)
            except BaseException as raised:  # every error that a provider raises concerns its event
                error = raised
            thread.activity.end()
            if not self._leave(thread):
                return
            took = self._clock.monotonic() - begun
            self._finish(CallResult(task, error, said, took=took))

    def _enter(self, thread: PoolThread, task: Task) -> bool:
        """Note that a call begins; return whether it may."""
        with self._lock:
            if self._close:
                return False
            self._calling += 1
            thread.task = task
            return True

    def _leave(self, thread: PoolThread) -> bool:
        with self._lock:
            self._calling -= 1
            close = None if self._calling else self._close
            wanted = not thread.activity.abandoned
            if wanted:
                thread.task = None
        if close:
            close()
        return wanted
