"""What all memory providers of one Hermes process share: one bus, and what it knows of sessions.

Hermes makes an instance for each agent, a gateway up to 128 of them, and may end without closing
them. So no instance owns anything that must be closed: published events are in the spool, and the
flusher belongs to the bus.
"""

import atexit
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from memorybus import MemoryBus, Session, Settings
from memorybus.clock import SYSTEM, Clock
from memorybus.events import Scope
from memorybus.redis.keys import recall_slot

from memorybus_hermes.plugin.injected import InjectedRecall
from memorybus_hermes.plugin.memory_files import MemoryFiles
from memorybus_hermes.plugin.oldest import drop_oldest
from memorybus_hermes.plugin.undone import UndoableTurns
from memorybus_hermes.problems import Problems, problems_path

_MAX_SESSIONS = 1_024
"""The most sessions kept in memory; older ones are read from the host's notes again (G10)."""

EXIT_SECONDS = 0.5
"""Seconds that Hermes may wait for Redis at its end; unsent events are sent by a later process."""


class SharedBus:
    """One bus with what its instances share. Safe to call from any thread.

    Attributes:
        injected: the recalled items that the windows of its sessions contain.
    """

    def __init__(self, bus: MemoryBus, clock: Clock) -> None:
        self.bus = bus
        self.clock = clock
        self.injected = InjectedRecall()
        self.turns = UndoableTurns(bus.sessions, clock)
        self.problems = Problems(problems_path(bus.settings), clock)
        self._lock = threading.RLock()
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._files: dict[Path, MemoryFiles] = {}

    def knows(self, scope: Scope, session_id: str) -> bool:
        with self._lock:
            at_hand = recall_slot(scope, session_id) in self._sessions
        return at_hand or self.bus.sessions.get(scope, session_id) is not None

    def session(
        self, scope: Scope, session_id: str, details: Mapping[str, str] | None = None
    ) -> Session:
        """Return a session in its present state; begin it with `details` if it is unknown here.

        Raises:
            InvalidEvent, SpoolFull: see `MemoryBus.session`.
        """
        slot = recall_slot(scope, session_id)
        with self._lock:
            session = self._sessions.get(slot)
            if session is not None:
                self._sessions.move_to_end(slot)
                return session
            return self.begin(scope, session_id, details=details)

    def begin(
        self,
        scope: Scope,
        session_id: str,
        title: str = "",
        details: Mapping[str, str] | None = None,
    ) -> Session:
        """Start a session, or continue it from the host's notes, and warm it up.

        A session that this process has in memory is not warmed up again: it has requested already
        what its next turn needs.
        """
        with self._lock:
            known = self._sessions.get(recall_slot(scope, session_id))
            session = self.bus.session(
                session_id,
                agent=scope.agent,
                user=scope.user,
                workspace=scope.workspace,
                platform=scope.platform,
                title=title,
                details=details,
                warm=known is None,
            )
            if known is not None and known.ref == session.ref:
                session = known  # this object knows where its warm recall came from
            return self.keep(session)

    def keep(self, session: Session) -> Session:
        """Remember a session's present state."""
        slot = recall_slot(session.scope, session.id)
        with self._lock:
            self._sessions[slot] = session
            self._sessions.move_to_end(slot)
            drop_oldest(self._sessions, _MAX_SESSIONS)
        return session

    def files(self, home: Path) -> MemoryFiles:
        with self._lock:
            if home not in self._files:
                self._files[home] = MemoryFiles(home, self.bus, self.clock)
            return self._files[home]


def connect(settings: Settings) -> MemoryBus:
    """Open a bus that lets Hermes end soon, even while Redis hangs (G9)."""
    bus = MemoryBus.connect(settings)
    atexit.unregister(bus.leave)
    atexit.register(bus.leave, EXIT_SECONDS)
    return bus


class HermesProcess:
    """The buses of a process: one for each data directory, Redis and namespace.

    Any thread may call it, also after a fork.
    """

    def __init__(
        self, connect: Callable[[Settings], MemoryBus] = connect, clock: Clock = SYSTEM
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._shared: dict[tuple[Path, str, str], SharedBus] = {}

    def shared(self, settings: Settings) -> SharedBus:
        """Return the bus of these settings with what belongs to it; open it at the first call.

        Raises:
            SpoolError: nothing can be written under `data_dir`.
        """
        place = (settings.data_dir, settings.redis_url, settings.namespace)
        self._check_process()
        with self._lock:
            if place not in self._shared:
                self._shared[place] = SharedBus(self._connect(settings), self._clock)
            return self._shared[place]

    def _check_process(self) -> None:
        """After a fork, replace locks that threads of the parent may hold; keep only the buses."""
        if self._pid != os.getpid():
            self._pid, self._lock = os.getpid(), threading.Lock()
            self._shared = {
                place: SharedBus(shared.bus, self._clock) for place, shared in self._shared.items()
            }


@cache
def this_process() -> HermesProcess:
    """Return the `HermesProcess` of this process, which all instances of Hermes share."""
    return HermesProcess()
