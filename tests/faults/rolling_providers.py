"""Providers that an old and a new worker both run: keys side by side where the release can."""

import sqlite3
import threading
from typing import Any

from helpers.providers.recording import Keyed, Lookup
from memorybus.events import TurnCompleted
from memorybus_providers.base import Capabilities, HookContext

_PAUSE_SECONDS = 0.002


def _capabilities() -> Capabilities:
    """Return what both releases know of, and `concurrent` where it exists."""
    known: Any = Capabilities
    side_by_side = {"concurrent": True} if "concurrent" in known.__struct_fields__ else {}
    return Capabilities(handles=frozenset({TurnCompleted}), **side_by_side)


class _SideBySide:
    """Takes its time outside, and its SQLite file one thread at a time."""

    capabilities = _capabilities()
    db: sqlite3.Connection

    def open(self) -> None:
        """Make the lock, then the file."""
        self._lock = threading.Lock()
        super().open()

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Record a turn."""
        threading.Event().wait(_PAUSE_SECONDS)
        with self._lock:
            super().sync_turn(event, ctx)

    def knows(self, event_id: str, ctx: HookContext) -> bool:
        """Ask."""
        with self._lock:
            return bool(super().knows(event_id, ctx))


class SideKeyed(_SideBySide, Keyed):
    """The backend takes our event id as its key."""


class SideLookup(_SideBySide, Lookup):
    """The backend is asked for an event id that is in doubt."""
