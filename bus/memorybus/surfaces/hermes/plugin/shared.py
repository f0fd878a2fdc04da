"""What all memory providers of one Hermes process share: one bus, and what it knows of sessions.

Hermes makes an instance per agent, a gateway up to 128 of them, and may end without a word. So no
instance owns anything that would have to be closed: what was published is in the spool, and the
flusher is the bus's.
"""

import atexit
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from memorybus import MemoryBus, Session, Settings, recall_slot
from memorybus.clock import SYSTEM, Clock
from memorybus.events import Scope
from memorybus.surfaces.hermes.plugin.injected import InjectedRecall
from memorybus.surfaces.hermes.plugin.memory_files import MemoryFiles
from memorybus.surfaces.hermes.plugin.oldest import drop_oldest
from memorybus.surfaces.hermes.plugin.undone import UndoableTurns
from memorybus.surfaces.hermes.problems import Problems, problems_path

_SESSIONS = 1_024
"""Sessions kept at hand; older ones are read from the host's notes again."""

LEAVING = 0.5
"""Seconds that leaving Hermes may wait for Redis; what is unsent then is sent by who comes next."""


class SharedBus:
    """One bus with what its instances share. Safe to call from any thread.

    Attributes:
        bus: the bus.
        injected: what recall the windows of its sessions hold.
        problems: the errors of its hooks.
        turns: those of its sessions that may be undone.
    """

    def __init__(self, bus: MemoryBus, clock: Clock) -> None:
        """Take a bus over."""
        self.bus = bus
        self.clock = clock
        self.injected = InjectedRecall()
        self.turns = UndoableTurns(bus.sessions, clock)
        self.problems = Problems(problems_path(bus.settings), clock)
        self._lock = threading.RLock()
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._begun: OrderedDict[str, None] = OrderedDict()
        self._files: dict[Path, MemoryFiles] = {}

    def knows(self, scope: Scope, session_id: str) -> bool:
        """Say whether this host has met a session."""
        with self._lock:
            at_hand = recall_slot(scope, session_id) in self._sessions
        return at_hand or self.bus.sessions.get(scope, session_id) is not None

    def session(
        self, scope: Scope, session_id: str, details: Mapping[str, str] | None = None
    ) -> Session:
        """Return a session where it stands, begun with `details` if this host has not met it.

        Raises:
            InvalidEvent, SpoolFull: see `MemoryBus.session`.
        """
        slot = recall_slot(scope, session_id)
        with self._lock:
            found = self._sessions.get(slot)
            if found is not None:
                self._sessions.move_to_end(slot)
                return found
            return self.begin(scope, session_id, details=details)

    def begin(
        self,
        scope: Scope,
        session_id: str,
        title: str = "",
        details: Mapping[str, str] | None = None,
    ) -> Session:
        """Start a session or go on with it, as the host's notes have it, and warm it up.

        One that is under way in this process has asked for what its next turn needs.
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
                session = known  # it knows where its warm recall came from
            return self.keep(session)

    def keep(self, session: Session) -> Session:
        """Remember where a session stands."""
        slot = recall_slot(session.scope, session.id)
        with self._lock:
            self._sessions[slot] = session
            self._sessions.move_to_end(slot)
            drop_oldest(self._sessions, _SESSIONS)
        return session

    def is_first(self, slot: str) -> bool:
        """Say, once, that no turn of a session has begun in this process."""
        with self._lock:
            first = slot not in self._begun
            self._begun[slot] = None
            drop_oldest(self._begun, _SESSIONS)
        return first

    def files(self, home: Path) -> MemoryFiles:
        """Return the watch over the memory files of a Hermes home."""
        with self._lock:
            if home not in self._files:
                self._files[home] = MemoryFiles(home, self.bus, self.clock)
            return self._files[home]


def connect(settings: Settings) -> MemoryBus:
    """Open a bus that lets Hermes leave at once, also while Redis hangs (G9)."""
    bus = MemoryBus.connect(settings)
    atexit.unregister(bus.leave)
    atexit.register(bus.leave, LEAVING)
    return bus


class HermesProcess:
    """The buses of a process, one for each place. Safe to call from any thread, and after a fork.

    Args:
        connect: opens a bus.
        clock: time.
    """

    def __init__(
        self, connect: Callable[[Settings], MemoryBus] = connect, clock: Clock = SYSTEM
    ) -> None:
        """Connect nothing yet."""
        self._connect = connect
        self._clock = clock
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._shared: dict[tuple[Path, str, str], SharedBus] = {}

    def shared(self, settings: Settings) -> SharedBus:
        """Return the bus of these settings with what belongs to it, opened if it is the first.

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
        """After a fork the locks may be held by threads that are not here; the buses go on."""
        if self._pid != os.getpid():
            self._pid, self._lock = os.getpid(), threading.Lock()
            self._shared = {
                place: SharedBus(shared.bus, self._clock) for place, shared in self._shared.items()
            }


@cache
def this_process() -> HermesProcess:
    """Return the one of this process: what every instance that Hermes makes finds again."""
    return HermesProcess()
