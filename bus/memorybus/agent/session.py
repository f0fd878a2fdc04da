"""A session: what an agent publishes about one conversation, how it goes on, what it reads back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memorybus.agent import contributions, session_events, system_prompts, tool_calls
from memorybus.agent.session_publishing import SessionEvents
from memorybus.events import Reason, Scope, SessionRef, SessionStarted
from memorybus.ids import text_digest
from memorybus.lineage import graph
from memorybus.recall.model import (
    CarryAsk,
    WarmAsk,
    is_trivial,
    prompt_slot,
    prompt_wanted,
    slot_of,
    wanted,
    written_by,
)
from memorybus.receipt import Receipt
from memorybus.redis.keys import owner_slot
from memorybus.text.cleaning import clean_text

if TYPE_CHECKING:
    from memorybus.agent.client import MemoryBus

_PROMPT_EVERY = 30.0
"""Seconds between the times that a session's turns ask for the next session's system prompt."""


class Session(SessionEvents):
    """One session of one scope; made by `MemoryBus.session`. Safe to call from any thread.

    Every method that publishes returns a `Receipt` after one local write (G1, G9) and raises what
    `Publisher.publish` raises. ``at`` is wall time in milliseconds; now if None. Only
    `ask_first`, `system_prompt`, `contributions` and `call_tool` wait for somebody, each with a
    deadline.

    Attributes:
        scope: who it belongs to.
        ref: its place in the lineage.
        key: the order key of its events, but for memory writes.
        slot: the name of its warm results.
    """

    def __init__(
        self, bus: MemoryBus, scope: Scope, ref: SessionRef, *, warm_from: str = ""
    ) -> None:
        """Use `MemoryBus.session`."""
        super().__init__(bus, scope, ref)
        self.slot = slot_of(scope, ref)
        self._owner = owner_slot(scope)
        self._warm_from = warm_from
        self._prompt_asked: float | None = None
        self._prompt_due = float("-inf")

    # -- lineage ----------------------------------------------------------------------------------

    def branch(
        self, new_id: str | None = None, *, title: str = "", at: int | None = None
    ) -> Session:
        """Fork the conversation; returns the branch, with this session's warm recall."""
        ref = graph.branch(self.ref, new_id or self._bus.new_id())
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
        return self._switched(graph.compress(self.ref, new_id), "compression", at)

    def switched_to(
        self,
        new_id: str,
        *,
        reason: Reason = "resume",
        reset: bool = False,
        at: int | None = None,
    ) -> Session:
        """Go on under another id; a `reset` begins anew: another root, and nothing warm."""
        reason = "reset" if reset else reason
        known = self._bus.sessions.get(self.scope, new_id)
        return self._switched(graph.follow(self.ref, new_id, reason, known), reason, at)

    def undo(self, *events: Receipt | str, at: int | None = None) -> Session:
        """Take back what was said last; returns this session in its next epoch.

        Providers that can retract forget what came from the events, also in a rebuild; nothing that
        was warm before is read any more. The log and its archive keep the events. ::

            receipt = session.turn_completed("my PIN is 4711", "Noted.")
            session = session.undo(receipt)

        Args:
            events: the receipts, or ids, of the undone turns and of what else this lineage
                published in them: delegations, calls of tools. A write to the stores `memory` and
                `user` is taken back by another write. An id that nobody knows retracts nothing.
            at: when.

        Raises:
            InvalidEvent: what is no id of an event.
        """
        retracted = session_events.retracted(events)
        ref = graph.rewind(self.ref)
        session = self._switched(ref, "rewind", at, retracted)
        if retracted:
            session.warm_up()
        return session

    def _switched(
        self, ref: SessionRef, reason: Reason, at: int | None, retracted: tuple[str, ...] = ()
    ) -> Session:
        goes_on = reason in graph.CONTINUING and not retracted  # what is warm may hold it
        session = self._continued(ref) if goes_on else self._bus.adopt(self.scope, ref)
        event = graph.switched(self.ref, ref, reason, retracted)
        event_id = session.event_id("switch", self.id, self.ref.epoch, reason, *retracted)
        session.publish(event, event_id, at)
        return session

    def _continued(self, ref: SessionRef) -> Session:
        """Return the session that continues this one, with its warm recall carried over."""
        session = self._bus.adopt(self.scope, ref, warm_from=self.slot)
        if session.slot != self.slot:
            self._bus.ask(CarryAsk(session.slot, 0, self.slot))
        return session

    # -- recall -----------------------------------------------------------------------------------

    def queue_prefetch(self, query: str) -> None:
        """Ask for memories for the next turn; returns at once. A trivial prompt asks nothing.

        The workers recall once they have applied what this process has published so far.
        """
        if not is_trivial(query):
            self._ask(query)
        now = self._bus.clock.monotonic()
        if now >= self._prompt_due:
            self._prompt_due = now + _PROMPT_EVERY
            self._ask_prompt(self._written())

    def warm_up(self, topic: str = "") -> None:
        """Ask for memories before anything was said; without a topic, for what matters most.

        And for what stands in system prompts (`system_prompt`).
        """
        self._ask_prompt(())  # first, and of what is applied: it is soon read
        self._ask(topic)

    def _ask(self, query: str) -> None:
        want = wanted(self.scope, self.ref, clean_text(query), self._bus.settings.recall_budget)
        self._bus.ask(WarmAsk(self.slot, self._bus.last_sequence, want, self._written()))

    def _ask_prompt(self, partitions: tuple[int, ...]) -> float:
        self._prompt_asked = asked = self._bus.clock.monotonic()
        if budget := self._bus.settings.prompt_budget:
            want, slot = prompt_wanted(self.scope, self.ref, budget), prompt_slot(self.scope)
            self._bus.ask(WarmAsk(slot, self._bus.last_sequence, want, partitions))
        return asked

    def _written(self) -> tuple[int, ...]:
        return written_by(self.scope, self.ref, self._bus.settings.partitions)

    def prefetch(self, query: str = "") -> str:
        """Return the memory block that is warm, or "": one round trip, within its deadline (G9).

        What is warm was asked for by `queue_prefetch`; `query` is there as in Hermes.
        """
        budget = self._bus.settings.recall_budget
        return self._bus.warm.block(self._owner, self.slot, self._warm_from, budget)

    def warm_lines(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return what `prefetch` makes its block of: providers with their escaped lines.

        For hosts with a fence of their own (`fence.build_lines`).
        """
        return self._bus.warm.sections(self._owner, self.slot, self._warm_from)

    # -- what waits for an answer -----------------------------------------------------------------

    def system_prompt(self, *, known: str = "") -> str:
        """Return what providers add to this session's system prompt, one fenced block, or "".

        The same bytes each time, for the life of the session and whatever continues it (branch,
        compression, undo), also in another process of this host and with Redis away: what the
        first call returned counts. That one reads what is ready for this agent, person and
        workspace; only if nothing is does it wait, at most until `opening_wait` seconds after the
        session asked for it, and not while Redis is known to be away (G9). All of it is data:
        labelled by provider, escaped, at most ``prompt_budget`` characters (G10).

        Args:
            known: what the agent's prompt says anyway: a provider that says nothing else is left
                out.
        """
        return system_prompts.of_session(self._bus, self, known)

    def prompt_asked(self) -> float:
        """Return the monotonic time at which this session asked for its prompt; it asks if new."""
        return self._ask_prompt(()) if self._prompt_asked is None else self._prompt_asked

    def ask_first(self, query: str, *, wait: float) -> None:
        """Ask for memories for a turn that nothing was asked ahead for, and wait for answers.

        Args:
            query: the prompt; a trivial one asks nothing.
            wait: seconds, at most (G9); what is warm then is read as always.
        """
        if not is_trivial(query):
            self._ask(query)
            asked = text_digest(clean_text(query))
            self._bus.warm.await_answer(self._owner, self.slot, asked, wait)

    def contributions(
        self,
        messages: Sequence[Mapping[str, Any]] = (),
        *,
        compression_count: int = 0,
        timeout: float = 2.0,
        at: int | None = None,
    ) -> str:
        """Publish what is about to leave the window as `compressing` does, and wait for texts.

        The events are fsynced before anything is waited for (G1): whoever does not answer within
        `timeout` seconds, or at all, loses nothing but a part of the summary (G9).

        Returns:
            What providers want kept in the summary, labelled by provider, escaped, at most
            ``contribution_budget`` characters; "" if there is nothing.

        Raises:
            InvalidEvent, EventTooLarge, SpoolFull: see `Publisher.publish`.
        """
        receipts = self.compressions(messages, compression_count, wants_reply=True, at=at)
        return contributions.gathered(self._bus, self.key, receipts, timeout)

    def call_tool(
        self,
        offered: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float = 10.0,
        event_id: str = "",
    ) -> dict[str, Any]:
        """Call a provider's tool for the model, and wait `timeout` seconds for its result.

        A tool that writes is a `ToolCalled` event: recorded before it is waited for, applied once
        as its provider's class says (G4), and repeated by a replay. A tool that only reads is run
        by a worker once the session's own events are applied.

        Args:
            offered: the tool's name as `MemoryBus.tools` offers it.
            arguments: as the model gave them.
            timeout: seconds; also with Redis away it takes no longer (G9).
            event_id: of a call that writes (`MemoryBus.new_id`), for an `undo`; a new one if empty.

        Returns:
            The tool's result, or ``{"ok": False, "error": "..."}``; with ``"recorded": True`` if
            the call stands in the spool and is applied later. It raises nothing that a model could
            not be told.
        """
        return tool_calls.call(self._bus, self, offered, arguments or {}, timeout, event_id)
