"""Publishes what a survey found, no faster than the log takes it.

A second run adds nothing, wherever the first one ended. What the first run published is in the
spool; the second run sends the spool first and then finds these events in the log. The event ids
are derived from what is published, so that even an event sent twice enters the log once (G2).
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from memorybus import (
    MemoryBus,
    PacedPublisher,
    Session,
    clean_text,
    memory_write,
    session_details,
    store_key,
)
from memorybus.clock import Clock
from memorybus.errors import EventError
from memorybus.events import (
    AnyEvent,
    ModelUsage,
    Scope,
    SessionRef,
    SessionStarted,
    SessionSwitched,
    StoreName,
)
from memorybus.ids import derived_id

from memorybus_hermes import scopes
from memorybus_hermes.home import HermesHome
from memorybus_hermes.masking import mask_as_host
from memorybus_hermes.reconcile.history_index import HistoryIndex, pair_digest
from memorybus_hermes.reconcile.survey import SessionGap
from memorybus_hermes.transcripts.scaffolding import is_by_host
from memorybus_hermes.transcripts.stored_turns import StoredTurn


class Importer:
    """Publishes stored turns through a bus.

    Args:
        on_wait: called with the number of unsent events while the importer waits for the log.
    """

    def __init__(self, bus: MemoryBus, clock: Clock, on_wait: Callable[[int], object]) -> None:
        self._bus = bus
        self.paced = PacedPublisher(bus, clock, on_wait)
        self.published = 0
        self.refused: list[str] = []  # what the bus refused, and why; one line for each

    def begin(self, gap: SessionGap) -> Session | None:
        """Return the session of a gap; publish its beginning if the log does not know it.

        Returns:
            None if the bus refuses the session (for its id, say); `refused` then says why.
        """
        try:
            session = self._session(gap)
            if gap.is_new:
                event, event_id = _beginning(gap, session.ref), _import_id(session, "begin")
                at = gap.stored.started_at
                self.paced.publish(lambda: session.publish(event, event_id, at))
        except EventError as error:
            self.refused.append(f"{gap.stored.id[:80]}: {error}")
            return None
        return session

    def _session(self, gap: SessionGap) -> Session:
        """Return the session, and keep this host's note of it, which a live plugin wrote."""
        ref = gap.place.ref
        if self._bus.sessions.get(gap.scope, ref.id) is None:
            return self._bus.adopt(gap.scope, ref)
        return Session(self._bus, gap.scope, ref)

    def turn(self, session: Session, turn: StoredTurn, model: str, retracted: str = "") -> bool:
        """Publish a turn with its own time; return False, and note it, if the bus refuses it.

        Args:
            retracted: the event that had the turn and was retracted by mistake, "" if none was.
        """
        again = ["again", retracted] if retracted else []
        mark = pair_digest(turn.user, turn.assistant).hex()
        user, assistant, messages = mask_as_host((turn.user, turn.assistant, turn.messages))
        try:
            self.paced.publish(
                lambda: session.turn_completed(
                    user,
                    assistant,
                    messages=messages,
                    event_id=_import_id(session, "turn", turn.row, mark, *again),
                    at=turn.at,
                    model=model,
                    synthetic=is_by_host(turn.user),
                )
            )
        except EventError as error:
            self.refused.append(f"{session.id}: message {turn.row}: {error}")
            return False
        self.published += 1
        return True

    def undo(self, session: Session, gap: SessionGap) -> None:
        """Publish that turns were undone; only a live plugin changes the session's epoch."""
        event = SessionSwitched(
            new_id=session.id, reason="rewind", rewound=True, retracted=tuple(gap.undone)
        )
        event_id = _import_id(session, "undo", *gap.undone)
        self.paced.publish(lambda: session.publish(event, event_id, gap.undone_at))

    def end(self, session: Session, gap: SessionGap, usage: tuple[ModelUsage, ...]) -> None:
        """Publish that a session is over, and what Hermes counted for it."""
        at = gap.stored.ended_at
        event_id = _import_id(session, "end", at)
        reason = gap.stored.end_reason
        self.paced.publish(lambda: session.ended(reason, usage=usage, event_id=event_id, at=at))

    def finish(self) -> None:
        """Wait until the log has everything.

        Raises:
            LogStalled: the log took nothing for a minute; the published events stay spooled.
        """
        self.paced.finish()


def _import_id(session: Session, *parts: str | int) -> str:
    """Return the id of an imported event; every run derives the same one (G2)."""
    scope = session.scope
    return derived_id("reconcile", scope.agent, scope.user, scope.workspace, session.id, *parts)


def _beginning(gap: SessionGap, ref: SessionRef) -> AnyEvent:
    """Return the event that a live plugin would have published as the session's first."""
    if gap.place.origin == "compression" and ref.parent:
        return SessionSwitched(new_id=ref.id, parent=ref.parent, reason="compression")
    branched = gap.place.origin == "branch"
    return SessionStarted(
        platform=gap.scope.platform,
        title=clean_text(mask_as_host(gap.stored.title)),
        parent=ref.parent,
        reason="branch" if branched else "start",
        details=session_details(gap.stored.details),
    )


_STORES: tuple[tuple[str, StoreName], ...] = (("MEMORY.md", "memory"), ("USER.md", "user"))


class FileEntry(msgspec.Struct, frozen=True):
    """An entry of a memory file; `at` is the file's last change, milliseconds since the epoch."""

    store: StoreName
    content: str
    at: int


def find_missing(home: HermesHome, scope: Scope, index: HistoryIndex) -> list[FileEntry]:
    """Return the entries of a home's memory files that were never written to the log."""
    return [
        entry
        for name, store in _STORES
        for entry in _entries(home.memories / name, store)
        if not index.has_write(store_key(store, scope), entry.content)
    ]


def _entries(path: Path, store: StoreName) -> Iterator[FileEntry]:
    if not path.is_file():
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    at = path.stat().st_mtime_ns // 1_000_000
    yield from (
        FileEntry(store, entry, at)
        for entry in scopes.parse_entries(text)
        if clean_text(entry).strip()
    )


def publish(
    bus: MemoryBus,
    scope: Scope,
    missing: list[FileEntry],
    accepted: Callable[[Callable[[], object]], None],
) -> list[str]:
    """Publish entries as additions, masked, each under an id derived from its text.

    Returns:
        What the bus refused, and why; one line for each.
    """
    refused = []
    for entry in missing:
        try:
            accepted(_publish_call(bus, scope, entry))
        except EventError as error:
            refused.append(f"{entry.store}: {error}")
    return refused


def _publish_call(bus: MemoryBus, scope: Scope, entry: FileEntry) -> Callable[[], object]:
    key = store_key(entry.store, scope)
    content = mask_as_host(entry.content)
    session = f"memories-of-{scope.agent}"
    return lambda: bus.publish(
        memory_write("add", entry.store, content, "", scopes.IMPORTED),
        event_id=scopes.import_id(key, content),
        key=key,
        scope=scope,
        session=SessionRef(id=session, root=session),
        at=entry.at,
    )
