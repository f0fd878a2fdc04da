"""The window of a conversation with the OpenAI Agents SDK: items in the log, and those to come."""

from __future__ import annotations

import threading

import msgspec
from memorybus import KeyHistory, MemoryBus, Session
from memorybus.errors import EventTooLarge, LogError
from memorybus.events import Envelope, SessionStarted, SessionSwitched, TurnCompleted

from memorybus_frameworks import openai_items
from memorybus_frameworks.openai_items import Item, words_of

_TYPES = (TurnCompleted.__name__, SessionStarted.__name__)
_BEGUN = {"history": "openai-agents"}
"""The mark of the event before which a conversation has no items."""


class _Part(msgspec.Struct, frozen=True):
    """The items that one event has brought, in a run that the caller has named, or not ("")."""

    event_id: str
    items: list[Item]
    run: str = ""


class ConversationWindow:
    """The items of a conversation, as `MemorySession` has them. Any thread may use it."""

    def __init__(self, bus: MemoryBus, session: Session, run_id: str) -> None:
        self.session = session
        self._bus = bus
        ours = (session.id,)
        self._past = KeyHistory(bus, session.key, session.scope, _TYPES, self._begins, ours)
        self._run_id = run_id
        self._lock = threading.Lock()
        self._parts: list[_Part] | None = None
        self._replayed: list[_Part] = []
        self._open: list[Item] = []
        self._cleared: list[Item] = []

    def read(self) -> list[Item]:
        """Return the window; raises `LogError` if the log cannot be read and never was before."""
        with self._lock:
            return self._read()

    def add(self, items: list[Item], tokens: tuple[int, int]) -> None:
        """Add items; publish the turns that they complete.

        Args:
            items: what was said.
            tokens: those of the prompt and those of the answer, of the last turn.
        """
        with self._lock:
            if self._parts is None:
                self._refresh()
            before, self._cleared = self._cleared, []
            compacted = any(item.get("type") == "compaction" for item in items)
            if compacted or (items and items == before):
                self._publish(items, window=True)
                return
            turns, self._open = openai_items.completed(self._open, items)
            for turn in turns:
                self._publish_all(turn, tokens if turn is turns[-1] else (0, 0))

    def pop(self) -> Item | None:
        """Remove the last item and return it; take its turn back."""
        with self._lock:
            if not self._open:
                self._refresh()
                if not self._parts:
                    return None
                last = self._parts.pop()
                self.session = self.session.undo(last.event_id)
                self._open = list(last.items)
            return self._open.pop()

    def clear(self) -> None:
        """Empty the window."""
        with self._lock:
            self._cleared = self._read()
            self._parts, self._open = [], []
            self.session = self.session.compressed()

    def _begins(self, envelope: Envelope) -> bool:
        """Whether nothing before an event belongs to the window."""
        event = envelope.event
        if isinstance(event, SessionStarted):
            begins = event.details == _BEGUN
        else:
            begins = isinstance(event, SessionSwitched) and event.reason == "compression"
        return begins

    def _read(self) -> list[Item]:
        self._refresh()
        parts = [part for part in self._parts or () if part not in self._replayed]
        published = [item for part in parts for item in part.items]
        return openai_items.without_orphans([*published, *self._open])

    def _refresh(self) -> None:
        """Read what every process has published; without Redis, keep what is known."""
        first = self._parts is None
        try:
            own = self._past.events()
        except LogError:
            if first:
                raise
            return
        if first and not any(isinstance(e.event, TurnCompleted) for e in own):
            begun = SessionStarted(platform=self.session.scope.platform, details=_BEGUN)
            self.session.publish(begun, self.session.event_id("history"))
        elif own and own[-1].session.epoch > self.session.ref.epoch:  # another host went on
            self.session = self._bus.adopt(self.session.scope, own[-1].session)
        turns = [(e.id, e.event) for e in own if isinstance(e.event, TurnCompleted)]
        self._parts = [_Part(i, openai_items.items_of(turn), turn.source_id) for i, turn in turns]
        if first and self._run_id:
            self._replayed = [part for part in self._parts if part.run == self._run_id]

    def _publish_all(self, items: list[Item], tokens: tuple[int, int]) -> None:
        """Publish items; in parts if they are too large for one event."""
        try:
            self._publish(items, tokens)
        except EventTooLarge:
            half = len(items) // 2
            if not half:
                raise
            self._publish_all(items[:half], (0, 0))
            self._publish_all(items[half:], tokens)

    def _publish(
        self, items: list[Item], tokens: tuple[int, int] = (0, 0), *, window: bool = False
    ) -> None:
        """Publish items with their words; those of a window were learned before."""
        parts = self._parts = self._parts or []
        if self._replayed and not window:
            self._replayed.pop(0)  # this run published it before it was repeated
            return
        user, answers = words_of(items, "user"), words_of(items, "assistant")
        words = ("", "") if window else ("\n".join(user), answers[-1] if answers else "")
        run = ("run", self._run_id, sum(part.run == self._run_id for part in parts))
        receipt = self.session.turn_completed(
            *words,
            messages=[{"item": i} if window else openai_items.message_of(i) for i in items],
            ordinal=len(parts),
            event_id=self.session.event_id(*run) if self._run_id else "",
            source_id=self._run_id,
            tokens_in=tokens[0],
            tokens_out=tokens[1],
        )
        parts.append(_Part(receipt.event_id, items, self._run_id))
        self.session.queue_prefetch(*words)
