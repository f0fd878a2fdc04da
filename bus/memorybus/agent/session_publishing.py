"""What an agent publishes about one conversation: a method for each kind of event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from memorybus.agent import session_events
from memorybus.events import (
    AnyEvent,
    ContextCompressing,
    Delegated,
    Scope,
    SessionEnded,
    SessionRef,
    StoreName,
    TurnStarted,
    WriteAction,
)
from memorybus.ids import Derivation, text_digest
from memorybus.receipt import Receipt
from memorybus.redis.keys import session_key, store_key
from memorybus.text.cleaning import clean_messages, clean_text

if TYPE_CHECKING:
    from memorybus.agent.client import MemoryBus


class SessionEvents:
    """The publishing half of a `Session`. Safe to call from any thread.

    Every method that publishes returns a `Receipt` after one local write (G1, G9) and raises what
    `Publisher.publish` raises. ``at`` is wall time in milliseconds; now if None.

    Attributes:
        scope: who it belongs to.
        ref: its place in the lineage.
        key: the order key of its events, but for memory writes.
    """

    def __init__(self, bus: MemoryBus, scope: Scope, ref: SessionRef) -> None:
        """Use `MemoryBus.session`."""
        self._bus = bus
        self.scope = scope
        self.ref = ref
        self.key = session_key(scope, ref.root)
        self._derivation = Derivation(scope.agent, scope.user, scope.workspace, ref.id, ref.epoch)

    @property
    def id(self) -> str:
        """The session's id."""
        return self.ref.id

    # -- events -----------------------------------------------------------------------------------

    def turn_started(
        self,
        message: str,
        *,
        number: int = 0,
        model: str = "",
        platform: str = "",
        remaining_tokens: int = -1,
        tool_count: int = -1,
        at: int | None = None,
    ) -> Receipt:
        """Say that the user has spoken (volatile: kept in the log, never archived).

        What the agent does not know it leaves out; see `TurnStarted`.
        """
        event = TurnStarted(
            number=number,
            message=clean_text(message),
            model=clean_text(model),
            platform=clean_text(platform),
            remaining_tokens=remaining_tokens,
            tool_count=tool_count,
        )
        return self.publish(event, "", at)

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
        synthetic: bool = False,
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
            synthetic: the host wrote `user` itself, nobody said it.
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
            synthetic=synthetic,
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

        What is written without `store` is the agent's own note: every person of that agent is
        shown it. What is about a person belongs to that person: ``store="user"``.

        Args:
            action: add ``content``; replace or remove the entry that holds ``old_text``.
            content: the new text.
            store: ``memory`` belongs to the agent, whoever it talks to; ``user`` to the person.
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
        return self.compressions(messages, compression_count, wants_reply=False, at=at)[-1]

    def compressions(
        self,
        messages: Sequence[Mapping[str, Any]],
        compression_count: int,
        *,
        wants_reply: bool,
        at: int | None,
    ) -> list[Receipt]:
        """Publish one compression, fsynced (G1); return the receipt of each of its events."""
        room = self._bus.settings.event_max_bytes
        events = session_events.compressing(
            messages, compression_count, room, wants_reply=wants_reply
        )
        return [self._compression(event, at) for event in events]

    def _compression(self, event: ContextCompressing, at: int | None) -> Receipt:
        mark = text_digest(msgspec.json.encode(event.messages).decode())
        event_id = self.event_id("compressing", event.compression_count, mark)
        return self.publish(event, event_id, at, durable=True)

    def delegated(
        self,
        task: str,
        result: str,
        *,
        child_session: str = "",
        model: str = "",
        tokens_in: int = 0,
        tokens_out: int = 0,
        tool_count: int = -1,
        at: int | None = None,
    ) -> Receipt:
        """Publish what a sub-agent did; with the child's session the id is derived (G2).

        What the agent does not know it leaves out; see `Delegated`.
        """
        event = Delegated(
            task=clean_text(task),
            result=clean_text(result),
            child_session=clean_text(child_session),
            model=clean_text(model),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            tool_count=tool_count,
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
            key=key or self.key,
            scope=self.scope,
            session=self.ref,
            at=at,
            durable=durable,
        )
