"""A session: what an agent publishes about one conversation, and what it reads back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from memorybus import lineage, session_events
from memorybus.cleaning import clean_messages, clean_text
from memorybus.events import (
    AnyEvent,
    Delegated,
    Reason,
    Scope,
    SessionEnded,
    SessionRef,
    SessionStarted,
    StoreName,
    TurnStarted,
    WriteAction,
)
from memorybus.ids import Derivation, text_digest
from memorybus.keys import session_key, store_key
from memorybus.publisher import Receipt
from memorybus.recall import CarryAsk, WarmAsk, is_trivial, slot_of, wanted, written_by

if TYPE_CHECKING:
    from memorybus.client import MemoryBus


class Session:
    """One session of one scope; made by `MemoryBus.session`. Safe to call from any thread.

    Every method that publishes returns a `Receipt` after one local write (G1, G9) and raises what
    `Publisher.publish` raises. ``at`` is wall time in milliseconds; now if None.

    Attributes:
        scope: who it belongs to.
        ref: its place in the lineage.
        slot: the name of its warm results.
    """

    def __init__(
        self, bus: MemoryBus, scope: Scope, ref: SessionRef, *, warm_from: str = ""
    ) -> None:
        """Use `MemoryBus.session`."""
        self._bus = bus
        self.scope = scope
        self.ref = ref
        self.slot = slot_of(scope, ref)
        self._warm_from = warm_from
        self._key = session_key(ref.root)
        self._derivation = Derivation(scope.agent, scope.user, scope.workspace, ref.id, ref.epoch)

    @property
    def id(self) -> str:
        """The session's id."""
        return self.ref.id

    # -- events -----------------------------------------------------------------------------------

    def turn_started(self, message: str, *, number: int = 0, at: int | None = None) -> Receipt:
        """Say that the user has spoken (volatile: kept in the log, never archived)."""
        return self.publish(TurnStarted(number=number, message=clean_text(message)), "", at)

    def turn_completed(
        self,
        user: str,
        assistant: str,
        *,
        messages: Sequence[Mapping[str, Any]] = (),
        ordinal: int | None = None,
        user_name: str = "",
        assistant_name: str = "",
        model: str = "",
        tokens_in: int = 0,
        tokens_out: int = 0,
        at: int | None = None,
        durable: bool = False,
    ) -> Receipt:
        """Publish a completed turn.

        Args:
            user: what the person said.
            assistant: what the agent answered.
            messages: this turn's messages, OpenAI style.
            ordinal: the turn's number within the session, from 0. With it the event's id is
                derived, so that publishing the turn again adds nothing (G2).
            user_name: the person's name, where known.
            assistant_name: the agent's name, where known.
            model: which model answered.
            tokens_in: prompt tokens; `tokens_out` those of the answer.
            durable: also survive a power cut.
        """
        event = session_events.turn(
            user,
            assistant,
            messages,
            ordinal=ordinal,
            user_name=user_name,
            assistant_name=assistant_name,
            model=model,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
        )
        event_id = ""
        if ordinal is not None:
            event_id = self.event_id("turn", ordinal, event.user, event.assistant)
        return self.publish(event, event_id, at, durable=durable)

    def memory_written(
        self,
        action: WriteAction,
        content: str = "",
        *,
        store: StoreName = "memory",
        old_text: str = "",
        tool_call_id: str = "",
        index: int = 0,
        provenance: Mapping[str, str] | None = None,
        at: int | None = None,
    ) -> Receipt:
        """Publish a write to the agent's or the person's memory.

        Args:
            action: add ``content``; replace or remove the entry that holds ``old_text``.
            content: the new text.
            store: ``memory`` belongs to the agent, ``user`` to the person.
            old_text: part of the entry meant.
            tool_call_id: with it and `index` the event's id is derived (G2).
            index: the write's number within its tool call.
            provenance: write origin and the like.
            at: when.

        Raises:
            InvalidEvent: an unknown action or store, or a text that the action needs is missing.
        """
        event = session_events.memory_write(action, store, content, old_text, provenance)
        event_id = self.event_id("write", tool_call_id, index) if tool_call_id else ""
        return self.publish(event, event_id, at, key=store_key(store, self.scope))

    def compressing(
        self,
        messages: Sequence[Mapping[str, Any]] = (),
        *,
        compression_count: int = 0,
        at: int | None = None,
    ) -> Receipt:
        """Publish the messages that are about to leave the context window, fsynced (G1).

        More than one event can carry are split into several; the receipt is the last one's.
        """
        room = self._bus.settings.event_max_bytes
        for event in session_events.compressing(messages, compression_count, room):
            mark = text_digest(msgspec.json.encode(event.messages).decode())
            event_id = self.event_id("compressing", compression_count, mark)
            receipt = self.publish(event, event_id, at, durable=True)
        return receipt

    def delegated(
        self, task: str, result: str, *, child_session: str = "", at: int | None = None
    ) -> Receipt:
        """Publish what a sub-agent did; with the child's session the id is derived (G2)."""
        event = Delegated(
            task=clean_text(task),
            result=clean_text(result),
            child_session=clean_text(child_session),
        )
        event_id = self.event_id("delegation", child_session) if child_session else ""
        return self.publish(event, event_id, at)

    def ended(
        self,
        reason: str = "",
        *,
        message_count: int = 0,
        messages: Sequence[Mapping[str, Any]] = (),
        at: int | None = None,
    ) -> Receipt:
        """Publish that the session is over. It may be resumed, and end again later."""
        event = SessionEnded(
            reason=clean_text(reason),
            message_count=message_count,
            messages=clean_messages(messages),
        )
        return self.publish(event, self.event_id("end", message_count), at)

    # -- lineage ----------------------------------------------------------------------------------

    def branch(
        self, new_id: str | None = None, *, title: str = "", at: int | None = None
    ) -> Session:
        """Fork the conversation; returns the branch, with this session's warm recall."""
        ref = lineage.branch(self.ref, new_id or self._bus.new_id())
        session = self._continued(ref)
        event = SessionStarted(
            platform=self.scope.platform,
            title=clean_text(title),
            parent=self.id,
            reason="branch",
        )
        session.publish(event, session.event_id("start"), at)
        return session

    def compressed(self, new_id: str | None = None, *, at: int | None = None) -> Session:
        """Go on after a compression: in place (next epoch), or under a new id."""
        return self._switched(lineage.compress(self.ref, new_id), "compression", at)

    def switched_to(
        self,
        new_id: str,
        *,
        reason: Reason = "resume",
        reset: bool = False,
        rewound: bool = False,
        at: int | None = None,
    ) -> Session:
        """Go on under another id.

        A `reset` begins anew: another root, and nothing warm. `rewound` turns were undone: the
        next epoch of this session, whatever `new_id` says.
        """
        reason = "reset" if reset else "rewind" if rewound else reason
        known = self._bus.sessions.get(self.scope, new_id)
        return self._switched(lineage.follow(self.ref, new_id, reason, known), reason, at)

    def _switched(self, ref: SessionRef, reason: Reason, at: int | None) -> Session:
        goes_on = reason in lineage.CONTINUING
        session = self._continued(ref) if goes_on else self._bus.adopt(self.scope, ref)
        event = lineage.switched(self.ref, ref, reason)
        session.publish(event, session.event_id("switch", self.id, self.ref.epoch, reason), at)
        return session

    def _continued(self, ref: SessionRef) -> Session:
        """Return the session that continues this one, with its warm recall carried over."""
        session = self._bus.adopt(self.scope, ref, warm_from=self.slot)
        if session.slot != self.slot:
            self._bus.ask(CarryAsk(session.slot, 0, self.slot))
        return session

    # -- publishing -------------------------------------------------------------------------------

    def event_id(self, kind: str, *parts: str | int) -> str:
        """Return the id of an event whose idempotency key is known (design, part 4; G2)."""
        return self._derivation.id(kind, *parts)

    def publish(
        self,
        event: AnyEvent,
        event_id: str,
        at: int | None,
        *,
        key: str = "",
        durable: bool = False,
    ) -> Receipt:
        """Publish an event of this session; `event_id` "" means a fresh one."""
        return self._bus.publish(
            event,
            event_id=event_id,
            key=key or self._key,
            scope=self.scope,
            session=self.ref,
            at=at,
            durable=durable,
        )

    # -- recall -----------------------------------------------------------------------------------

    def queue_prefetch(self, query: str) -> None:
        """Ask for memories for the next turn; returns at once. A trivial prompt asks nothing.

        The workers recall once they have applied what this process has published so far.
        """
        if not is_trivial(query):
            self.warm_up(query)

    def warm_up(self, topic: str = "") -> None:
        """Ask for memories before anything was said; without a topic, for what matters most."""
        want = wanted(self.scope, self.ref, clean_text(topic), self._bus.settings.recall_budget)
        partitions = written_by(self.scope, self.ref, self._bus.settings.partitions)
        self._bus.ask(WarmAsk(self.slot, self._bus.last_sequence, want, partitions))

    def prefetch(self, query: str = "") -> str:
        """Return the memory block that is warm, or "": one round trip, within its deadline (G9).

        What is warm was asked for by `queue_prefetch`; `query` is there as in Hermes.
        """
        return self._bus.warm.block(self.slot, self._warm_from, self._bus.settings.recall_budget)
