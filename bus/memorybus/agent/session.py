"""A session: publishes the events of a conversation, continues it, and reads back memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack, get_args

import msgspec

from memorybus.agent import contributions, session_events, system_prompts, tool_calls
from memorybus.agent.port import SessionBus
from memorybus.agent.prompt_recorder import MAX_PENDING_SESSIONS
from memorybus.agent.session_events import TurnDetails
from memorybus.events import (
    AnyEvent,
    ContextCompressing,
    Delegated,
    ModelUsage,
    Reason,
    Scope,
    SessionEnded,
    SessionRef,
    SessionStarted,
    StoreName,
    TurnCompleted,
    TurnStarted,
    WriteAction,
)
from memorybus.ids import Derivation, text_digest
from memorybus.lineage import graph
from memorybus.recall.answers import Answer, RecallQuestion
from memorybus.recall.lines import WindowMessages, window_text
from memorybus.recall.model import (
    CarryAsk,
    WarmAsk,
    build_prompt_request,
    build_request,
    prompt_slot,
    slot_of,
    written_partitions,
)
from memorybus.recall.shown import ShownPrompt, recalled_by
from memorybus.receipt import Receipt
from memorybus.redis.keys import owner_slot, session_key, store_key
from memorybus.small_talk import UNASKED, PromptKind, kind_of, with_topic
from memorybus.text.cleaning import check_id, clean_fields, clean_messages, clean_text
from memorybus.text.fence import build_block, without_repeats
from memorybus.wire.exact import exact_value, refusal, whole

_PROMPT_INTERVAL_SECONDS = 30.0
"""The shortest time, in seconds, between a session's requests for the next system prompt."""

_MAX_ANSWER_CHARS = 1_000
"""How many characters of an agent's answer a request made ahead contains: its topic comes first."""


class Session:
    """One session of one scope; `MemoryBus.session` makes it. Any thread may use it.

    Every method that publishes returns a `Receipt` after one local write (G1, G9), and raises
    `InvalidEvent`, `EventTooLarge` or `SpoolError`. ``at`` is wall time in milliseconds; now if
    None. Only `prefetch`, `recalled_lines`, `system_prompt`, `contributions` and `call_tool` wait
    for other processes, each with a deadline.

    Attributes:
        scope: its owner.
        ref: its place in the lineage.
        key: the order key of its events, except memory writes.
        slot: the name of its warm results.
    """

    def __init__(
        self,
        bus: SessionBus,
        scope: Scope,
        ref: SessionRef,
        *,
        warm_from: str = "",
        topic: str = "",
        prompted: bool = False,
    ) -> None:
        self._bus = bus
        self.scope = scope
        self.ref = ref
        self.key = session_key(scope, ref.root)
        self.slot = slot_of(scope, ref)
        self._derivation = Derivation(scope.agent, scope.user, scope.workspace, ref.id, ref.epoch)
        slots = (self.slot, warm_from) if warm_from else (self.slot,)
        self._warm_keys = bus.warm.keys(owner_slot(scope), *slots)
        self._prompt_asked: float | None = None
        self._prompt_due = float("-inf")
        self._topic = topic
        self._prompted = prompted
        self._asked: tuple[str, Answer] | None = None

    @property
    def id(self) -> str:
        """The session's id."""
        return self.ref.id

    # -- what happens ------------------------------------------------------------------------------

    def turn_started(
        self,
        message: str,
        *,
        number: int = 0,
        model: str = "",
        platform: str = "",
        remaining_tokens: int = -1,
        tool_count: int = -1,
        event_id: str = "",
        at: int | None = None,
    ) -> Receipt:
        """Publish that the user has spoken (volatile: kept in the log, never archived).

        Leave out what the agent does not know; see `TurnStarted`.
        """
        event = TurnStarted(
            number=number,
            message=clean_text(message, "message"),
            model=clean_text(model, "model"),
            platform=clean_text(platform, "platform"),
            remaining_tokens=remaining_tokens,
            tool_count=tool_count,
        )
        return self.publish(event, event_id, at)

    def turn_completed(
        self,
        user: str,
        assistant: str,
        *,
        messages: Sequence[Mapping[str, Any]] = (),
        ordinal: int | None = None,
        event_id: str = "",
        at: int | None = None,
        durable: bool = False,
        **details: Unpack[TurnDetails],
    ) -> Receipt:
        """Publish a completed turn.

        Args:
            user: what the person said.
            assistant: what the agent answered.
            messages: this turn's messages, OpenAI style.
            ordinal: the turn's number within the session, from 0. With it the event's id is
                derived, so that publishing the turn again adds nothing (G2).
            event_id: the caller's own id instead (`ids.derived_id`), for the same reason.
            at: the time of the turn.
            durable: the event must also survive a power cut.
            details: what else is known of the turn: names, model, tokens; see `TurnDetails`.
        """
        if ordinal is not None and type(ordinal) is not int:
            ordinal = whole("ordinal", ordinal)
        pending = self._bus.prompts.pending
        prompt = self._bus.prompts.prompt_of(self.key, self.id) if self.key in pending else None
        event = TurnCompleted(
            **clean_fields({"user": user, "assistant": assistant, **details}),
            messages=clean_messages(messages) if messages else (),
            ordinal=-1 if ordinal is None else ordinal,
            recalled=recalled_by(prompt) if prompt else (),
        )
        if ordinal is not None and not event_id:
            event_id = self._derivation.id("turn", ordinal, event.user, event.assistant)
        receipt = self.publish(event, event_id, at, durable=durable)
        self._bus.turns.note(self.key, receipt.event_id, event)
        if self.key in pending:
            self._bus.prompts.record(self.key, receipt.event_id, self.id)
        return receipt

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
        event_id: str = "",
        at: int | None = None,
    ) -> Receipt:
        """Publish a write to the agent's or the person's memory.

        Without `store`, the text is the agent's own note, and every person who talks to that agent
        is shown it. A text about a person belongs to that person: use ``store="user"``.

        Args:
            action: add ``content``; replace or remove the entry that contains ``old_text``.
            content: the new text.
            store: ``memory`` belongs to the agent, whoever it talks to; ``user`` to the person.
            old_text: a part of the entry that is replaced or removed.
            tool_call_id: with it and `index` the event's id is derived (G2).
            index: the write's number within its tool call.
            provenance: the write's origin and similar facts.
            event_id: the caller's own id instead.
            at: the time of the write.

        Raises:
            InvalidEvent: an unknown action or store, or a text that the action needs is missing.
        """
        event = session_events.memory_write(action, store, content, old_text, provenance)
        call, number = clean_text(tool_call_id, "tool_call_id"), whole("index", index)
        event_id = event_id or (self.event_id("write", call, number) if call else "")
        return self.publish(event, event_id, at, key=store_key(store, self.scope))

    def compressing(
        self,
        messages: Sequence[Mapping[str, Any]] = (),
        *,
        compression_count: int = 0,
        at: int | None = None,
    ) -> Receipt:
        """Publish the messages that are about to leave the context window, fsynced (G1).

        If they are too many for one event, they are split into several; the receipt of the last one
        is returned. Messages that only undone turns of this process said are left out.
        """
        return self._publish_compression(messages, compression_count, wants_reply=False, at=at)[-1]

    def _publish_compression(
        self,
        messages: Sequence[Mapping[str, Any]],
        compression_count: int,
        *,
        wants_reply: bool,
        at: int | None,
    ) -> list[Receipt]:
        room = self._bus.settings.event_max_bytes
        standing = self._bus.turns.standing(self.key, clean_messages(messages))
        events = session_events.build_compressions(
            standing, compression_count, room, wants_reply=wants_reply
        )
        return [self._publish_compressing(event, at) for event in events]

    def _publish_compressing(self, event: ContextCompressing, at: int | None) -> Receipt:
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
        event_id: str = "",
        at: int | None = None,
    ) -> Receipt:
        """Publish what a sub-agent did; with `child_session` the event's id is derived (G2).

        Leave out what the agent does not know; see `Delegated`.
        """
        event = Delegated(
            task=clean_text(task, "task"),
            result=clean_text(result, "result"),
            child_session=clean_text(child_session, "child_session"),
            model=clean_text(model, "model"),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            tool_count=tool_count,
        )
        if child_session and not event_id:
            event_id = self.event_id("delegation", child_session)
        return self.publish(event, event_id, at)

    def ended(
        self,
        reason: str = "",
        *,
        message_count: int = 0,
        messages: Sequence[Mapping[str, Any]] = (),
        usage: Sequence[ModelUsage] = (),
        event_id: str = "",
        at: int | None = None,
    ) -> Receipt:
        """Publish that the session is over. It may be resumed, and end again later.

        `usage` is what the agent counted for the whole session so far, by model.
        """
        count = whole("message_count", message_count)
        event = SessionEnded(
            reason=clean_text(reason, "reason"),
            message_count=count,
            messages=clean_messages(messages),
            usage=exact_value(usage, tuple[ModelUsage, ...], "usage"),
        )
        return self.publish(event, event_id or self.event_id("end", count), at)

    # -- events as they are, for integrations ------------------------------------------------------

    def event_id(self, kind: str, *parts: str | int) -> str:
        """Return an event id derived from this session, a kind and distinguishing parts (G2).

        Any process on any host derives the same id from the same parts.
        """
        return self._derivation.id(kind, *parts)

    def publish(
        self,
        event: AnyEvent,
        event_id: str = "",
        at: int | None = None,
        *,
        key: str = "",
        durable: bool = False,
    ) -> Receipt:
        """Publish an event of this session; without `event_id` it gets a new id.

        Raises:
            InvalidEvent: see `MemoryBus.publish`; or `at` is in seconds.
        """
        return self._bus.publisher.publish(
            event,
            event_id=event_id,
            key=key or self.key,
            scope=self.scope,
            session=self.ref,
            at=None if at is None else session_events.checked_time(at),
            durable=durable,
        )

    # -- lineage ----------------------------------------------------------------------------------

    def branch(
        self, new_id: str | None = None, *, title: str = "", at: int | None = None
    ) -> Session:
        """Fork the conversation, and return the branch, which has this session's warm recall."""
        ref = graph.branch(self.ref, new_id or self._bus.new_id())
        session = self._continue_as(ref)
        event = SessionStarted(
            platform=self.scope.platform,
            title=clean_text(title, "title"),
            parent=self.id,
            reason="branch",
        )
        session.publish(event, session.event_id("start"), at)
        self._bus.sessions.put(self.scope, ref)
        return session

    def compressed(
        self, new_id: str | None = None, *, event_id: str = "", at: int | None = None
    ) -> Session:
        """Return the session after a compression: in place (next epoch), or under a new id.

        With an `event_id` of the caller's the same step again changes nothing (G2), unless another
        one of this session came between; likewise for `switched_to` and `undo`.
        """
        return self._switch(graph.compress(self.ref, new_id), "compression", at, event_id)

    def switched_to(
        self,
        new_id: str,
        *,
        reason: Reason = "resume",
        reset: bool = False,
        event_id: str = "",
        at: int | None = None,
    ) -> Session:
        """Return the session under another id; with `reset` it has a new root and nothing warm."""
        reason = "reset" if reset else reason
        if reason not in get_args(Reason):
            raise refusal("reason", Reason, reason)
        stored = self._bus.sessions.get(self.scope, check_id("new_id", new_id))
        return self._switch(graph.follow(self.ref, new_id, reason, stored), reason, at, event_id)

    def undo(self, *events: Receipt | str, event_id: str = "", at: int | None = None) -> Session:
        """Take back what was said last; return this session in its next epoch.

        Providers that can retract forget what they learned from these events, also in a rebuild.
        Memories that were warm before are not read any more. The log and its archive keep the
        events. ::

            receipt = session.turn_completed("my PIN is 4711", "Noted.")
            session = session.undo(receipt)

        Args:
            events: the receipts, or ids, of the undone turns and of the other events that this
                lineage published during them: delegations, calls of tools. A write to the stores
                `memory` and `user` is taken back by another write. An unknown id retracts nothing.
            event_id: see `compressed`.
            at: the time of the undo.

        Raises:
            InvalidEvent: one of `events` is not an event id.
        """
        retracted = session_events.checked_event_ids(events)
        self._bus.turns.undo(retracted)
        ref = graph.rewind(self.ref)
        session = self._switch(ref, "rewind", at, event_id, retracted)
        if retracted:
            session.warm_up()
        return session

    def came_from(self, before: Session, reason: Reason = "reset") -> Receipt:
        """Publish the session from which this one came, if that was not known when it began.

        The session keeps its root and epoch; nothing warm is carried over.
        """
        event = graph.switch_event(before.ref, self.ref, reason)
        return self.publish(event, self.event_id("switch", before.id, before.ref.epoch, reason))

    def _switch(
        self,
        ref: SessionRef,
        reason: Reason,
        at: int | None,
        event_id: str,
        retracted: tuple[str, ...] = (),
    ) -> Session:
        if event_id and self._bus.sessions.led_to(self.scope, ref.id) == event_id:
            return self._move_to(self._bus.sessions.get(self.scope, ref.id) or ref)
        # Warm results may hold text that was taken back: a rewind that retracts carries none over.
        goes_on = reason in graph.CONTINUING_REASONS and not retracted
        session = self._continue_as(ref) if goes_on else self._move_to(ref)
        event = graph.switch_event(self.ref, ref, reason, retracted)
        event_id = event_id or session.event_id(
            "switch", self.id, self.ref.epoch, reason, *retracted
        )
        session.publish(event, event_id, at)
        self._bus.sessions.put(self.scope, ref, event_id)
        return session

    def _continue_as(self, ref: SessionRef) -> Session:
        """Return the session that continues this one, with its warm recall carried over."""
        session = self._move_to(ref, warm_from=self.slot)
        if session.slot != self.slot:
            self._bus.ask(CarryAsk(session.slot, 0, self.slot))
        return session

    def _move_to(self, ref: SessionRef, warm_from: str = "") -> Session:
        check_id("new_id", ref.id)
        topic = self._topic if warm_from else ""
        prompted = self._prompted and bool(warm_from)
        return Session(
            self._bus, self.scope, ref, warm_from=warm_from, topic=topic, prompted=prompted
        )

    # -- recall -----------------------------------------------------------------------------------

    def queue_prefetch(self, query: str, answer: str = "") -> None:
        """Ask for memories about this turn ahead of the next one; returns at once.

        The workers recall once they have applied the events that this process has published so
        far. A trivial prompt asks for no memories. At most every 30 s, the call also asks for what
        providers add to the next system prompt.

        Args:
            query: what the person said.
            answer: what the agent answered; only its beginning is used.
        """
        query, answer = _text(query), _text(answer)
        kind = kind_of(query)
        if kind not in UNASKED:
            asked = with_topic(query, self._topic) if kind == "follow-up" else query
            self._ask_ahead(f"{asked}\n{answer[:_MAX_ANSWER_CHARS]}" if answer else asked)
        now = self._bus.clock.monotonic()
        if now >= self._prompt_due:
            self._prompt_due = now + _PROMPT_INTERVAL_SECONDS
            self._ask_prompt(self._written_partitions())

    def warm_up(self, topic: str = "") -> None:
        """Ask for memories of a topic before anything was said; without one, for what matters most.

        This also asks for what providers add to system prompts (`system_prompt`).
        """
        self._ask_prompt(())  # first, and without waiting for events: it is read soon
        self._ask_ahead(_text(topic))

    def _ask_ahead(self, query: str) -> None:
        self._bus.ask(self._build_question(clean_text(query)))

    def _ask_now(self, text: str) -> WarmAsk:
        """Return a question that is sent at once, also before events that are still spooled."""
        question = self._build_question(text)
        want = msgspec.structs.replace(question.want, early=self._bus.publisher.unsent > 0)
        return msgspec.structs.replace(question, want=want)

    def _build_question(self, text: str) -> WarmAsk:
        budget, trace = self._bus.settings.recall_budget, self._bus.tracing.current()
        want = build_request(self.scope, self.ref, text, budget, trace)
        return WarmAsk(self.slot, self._bus.last_sequence, want, self._written_partitions())

    def _ask_prompt(self, partitions: tuple[int, ...]) -> float:
        self._prompt_asked = asked = self._bus.clock.monotonic()
        if budget := self._bus.settings.prompt_budget:
            want, slot = build_prompt_request(self.scope, self.ref, budget), prompt_slot(self.scope)
            self._bus.ask(WarmAsk(slot, self._bus.last_sequence, want, partitions))
        return asked

    def _written_partitions(self) -> tuple[int, ...]:
        return written_partitions(self.scope, self.ref, self._bus.settings.partitions)

    def prefetch(
        self, query: str = "", *, known: WindowMessages = (), wait: float | None = None
    ) -> str:
        """Return the memory block for a prompt, or "" if no memory is related to it.

        If the answer to this very prompt is warm, the call takes one round trip. Otherwise all
        providers are asked at once, and the call waits for them, at most `wait` seconds and not
        while Redis is away (G9). If a provider is late, only those of its warm lines are used that
        are related to the prompt. A trivial prompt ("ok") has no block, but a greeting as the first
        prompt, and a question like "what do you know about me?", get what is known of the person. A
        prompt that only refers back ("when was that?") is asked together with the last prompt of
        this object that does not.

        Args:
            query: the prompt; without one, or if it is no text, everything warm is returned.
            known: the messages that the model sees anyway. A memory whose text stands in one of
                them is left out, and others take its room.
            wait: the most seconds to wait; the setting `prefetch_wait` if None or no number, 0 to
                ask no provider.
        """
        lines = self.recalled_lines(query, known=known, wait=wait)
        block = build_block(lines, self._bus.settings.recall_budget) if lines else ""
        return self.shown(block)

    def shown(self, block: str) -> str:
        """Note the text that a host made of the last `recalled_lines`, and return it.

        `prefetch` does so itself. With the turn that follows, the bus records what its prompt was
        given (`memorybus events get TURN --shown`), unless `recorded_prompts` says otherwise.
        """
        prompts, prompt = self._bus.prompts, None
        if self._asked and isinstance(block, str):
            prompt = ShownPrompt(self.scope, self.ref, self._asked[0], block, self._asked[1])
        if prompt or self.key in prompts.pending:  # one that asked nothing ends the one before it
            prompts.pending[self.key].append(prompt)
            if len(prompts.pending) > MAX_PENDING_SESSIONS:
                prompts.record_oldest()
        return block

    def recalled_lines(
        self, query: str = "", *, known: WindowMessages = (), wait: float | None = None
    ) -> list[tuple[str, Sequence[str]]]:
        """Return the providers with their escaped lines, from which `prefetch` makes its block.

        A line that several providers return is listed only under the first of them. This is meant
        for hosts that build their own fence (`fence.build_lines`); they call `shown` with it.

        Args:
            query: as for `prefetch`.
            known: as for `prefetch`.
            wait: as for `prefetch`.
        """
        prompt_text = clean_text(query) if isinstance(query, str) else ""
        kind = kind_of(prompt_text)
        self._asked = None
        if kind == "trivial" or (kind == "greeting" and self._prompted):
            self._prompted = True
            return []
        bus = self._bus
        with bus.tracing.recall() as span:
            text = None if kind == "blank" else self._words_to_ask(prompt_text, kind)
            window = window_text(known) if known else ""
            question = RecallQuestion(self._warm_keys, text, self._ask_now, window)
            wait = wait if isinstance(wait, int | float) else bus.settings.prefetch_wait
            answer = bus.recalls.answer(question, wait)
            self._asked = prompt_text, answer
            sections = without_repeats(bus.warm.in_provider_order(answer.lines))
            if span:
                lines = sum(len(lines) for _, lines in sections)
                span.set_counts(lines=lines, providers=len(sections))
            return sections

    def _words_to_ask(self, said: str, kind: PromptKind) -> str:
        """Return what to ask for a prompt: itself, or with the topic if it only refers back.

        A prompt that does not refer back becomes the topic of the next ones; one that asks for what
        is known of the person has no words to search for.
        """
        self._prompted = True
        if kind == "follow-up":
            return with_topic(said, self._topic)
        if kind != "question":
            return ""
        self._topic = said
        return said

    # -- what waits for an answer -----------------------------------------------------------------

    def system_prompt(self, *, known: str = "") -> str:
        """Return what providers add to this session's system prompt, as one fenced block, or "".

        Every call returns the same bytes as the first one that was answered, for the life of the
        session and of the sessions that continue it (branch, compression, undo), also in another
        process of this host and while Redis is away. Until then each call reads what is ready for
        this agent, person and workspace. If no provider has answered, it waits, at most until
        `opening_wait` seconds after the session asked, and not while Redis is known to be away
        (G9); it returns "", and the next call reads again. The block is data: it is
        labelled by provider and escaped, and has at most ``prompt_budget`` characters (G10).

        Args:
            known: text that the agent's prompt contains anyway; a provider that adds nothing else
                is left out.
        """
        return system_prompts.session_prompt(
            self._bus, self.scope, self.ref.root, self._prompt_asked_at, _text(known)
        )

    def _prompt_asked_at(self) -> float:
        """Return the monotonic time at which this session asked for its prompt; ask if need be."""
        return self._ask_prompt(()) if self._prompt_asked is None else self._prompt_asked

    def contributions(
        self,
        messages: Sequence[Mapping[str, Any]] = (),
        *,
        compression_count: int = 0,
        timeout: float = 2.0,
        at: int | None = None,
    ) -> str:
        """Publish what is about to leave the window as `compressing` does, and wait for texts.

        The events are fsynced before this waits (G1). If a provider does not answer within
        `timeout` seconds, only its part of the summary is missing (G9).

        Returns:
            The texts that providers want kept in the summary, labelled by provider and escaped, in
            all at most ``contribution_budget`` characters; "" if there are none.

        Raises:
            InvalidEvent, EventTooLarge, SpoolFull: the events are not published.
        """
        receipts = self._publish_compression(messages, compression_count, wants_reply=True, at=at)
        return contributions.gather_contributions(self._bus, self.key, receipts, timeout)

    def call_tool(
        self,
        offered: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float = 10.0,
        event_id: str = "",
    ) -> dict[str, Any]:
        """Call a provider's tool for the model, and wait at most `timeout` seconds for its result.

        The call of a tool that writes is a `ToolCalled` event: it is recorded before the wait
        begins, applied once as far as its provider's delivery class says (G4), and repeated by a
        replay. A tool that only reads is run by a worker once the session's own events are applied.

        Args:
            offered: the tool's name as `MemoryBus.tools` offers it.
            arguments: the arguments as the model gave them.
            timeout: the most seconds to wait, also if Redis is away (G9).
            event_id: the id for the event of a call that writes (`MemoryBus.new_id`), so that it
                can be undone; a new one if empty.

        Returns:
            The tool's result, or ``{"ok": False, "error": "..."}``; with ``"recorded": True`` if
            the call is in the spool and will be applied later. Errors of the bus are returned in
            this form and not raised, so that the model can be told.
        """
        return tool_calls.call_tool(self._bus, self, offered, arguments or {}, timeout, event_id)


def _text(given: object) -> str:
    """Return what a caller gave, or "" if it is no text: recall breaks no agent (G9)."""
    return given if isinstance(given, str) else ""
