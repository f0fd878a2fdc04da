"""The conversation of one memory provider instance of Hermes: what it publishes and recalls.

Every method makes at most one local write (G9), and the end of a turn two. Only `system_prompt`,
`prefetch`, `save_before_compression`, `call` and `close` wait, each with a deadline. Methods raise
what the bus raises; `provider.HermesMemory` catches it before it reaches Hermes.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from memorybus import Receipt, Session
from memorybus.errors import EventTooLarge
from memorybus.events import Scope
from memorybus.redis.keys import recall_slot

from memorybus_hermes import scopes
from memorybus_hermes.masking import mask_as_host
from memorybus_hermes.plugin import session_tracker
from memorybus_hermes.plugin.memory_tool import file_write, provenance
from memorybus_hermes.plugin.oldest import drop_oldest
from memorybus_hermes.plugin.session_tracker import SessionTracker
from memorybus_hermes.plugin.shared import SharedBus
from memorybus_hermes.plugin.speakers import Speakers
from memorybus_hermes.plugin.undone import (
    answer_stands,
    read_stored_turns,
    read_taken_back,
)
from memorybus_hermes.plugin.usage import (
    TurnUsage,
    UsageMeter,
    delegation_usage,
    turn_start_details,
)
from memorybus_hermes.scopes import Author, FileWrite, author_scope
from memorybus_hermes.transcripts import scaffolding, stored_turns

_MAX_REMEMBERED = 256
"""The most memory tool calls whose writes are counted, and sessions that await a switch (G10)."""

_OVERHEAD_BYTES = 4_096  # bytes of an event that are neither texts nor messages


class UnplacedTurn(msgspec.Struct, frozen=True):
    """A turn that has begun in a session that no call has named yet."""

    message: str
    begin: Callable[[str], None]


class HermesConversation:
    """The state of one instance. Safe to call from any thread."""

    def __init__(
        self,
        shared: SharedBus,
        scope: Scope,
        session_id: str,
        *,
        title: str,
        details: Mapping[str, str],
        may_be_shared: bool,
        home: Path | None,
        hint: Callable[[], str | None],
    ) -> None:
        self.scope = scope
        self._shared = shared
        self._settings = shared.bus.settings
        self._details = details
        self._hint = hint
        self._home = home
        self._files = shared.files(home) if home else None
        self._meter = UsageMeter(home / "state.db" if home else None)
        self._lock = threading.RLock()
        self._tracker = SessionTracker(session_id)
        self._speakers = Speakers(scope, shared=may_be_shared)
        self._early: OrderedDict[str, None] = OrderedDict()
        self._writes: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._answers: OrderedDict[str, str] = OrderedDict()  # answers of turns, by slot
        self._unplaced: UnplacedTurn | None = None
        self._spoken = self._compressed = False  # whether a turn began, or a compression was done
        self._compressing: int | None = None  # the thread of a compression that was announced
        self._held: list[tuple[Session, int]] = []
        shared.begin(scope, session_id, title, details)
        self._retract_unreported(session_id)
        self._publish_left(session_id)
        self._check_files(session_id)

    @property
    def current_session(self) -> str:
        return self._tracker.now

    # -- turns ------------------------------------------------------------------------------------

    def start_turn(
        self, number: int, message: str, author: Author, told: Mapping[str, Any]
    ) -> None:
        """Note the agent's session and the turn's author, and publish that the turn has started.

        In a plugin host nothing names the session yet: the turn begins with its next call.
        """
        begin = partial(self._begin_turn, number, message, author_scope(self.scope, author), told)
        self._place_turn()
        hint = self._hint()
        if hint is None:
            self._unplaced = UnplacedTurn(message, begin)
        else:
            begin(hint)

    def _place_turn(self, session_id: str = "") -> None:
        """Begin a turn that waits for its session: in this one, or else in the agent's last."""
        with self._lock:
            waiting, self._unplaced = self._unplaced, None
            if waiting:
                waiting.begin(session_id)

    def _begin_turn(
        self, number: int, message: str, scope: Scope, told: Mapping[str, Any], hint: str
    ) -> None:
        with self._lock:
            session_id = self._tracker.enter(hint)
            self._spoken = True
            self._speakers.started(session_id, scope, message)
            self._drop_held_end()
        self._retract_unreported(session_id)
        session, said = self._session(session_id, scope), scaffolding.user_text(message)
        details = turn_start_details(told)
        self._meter.begins(session_id, message, details.get("model", ""))
        self._shared.turns.begin(self._slot(session_id), scope, said)
        session.turn_started(said, number=number, **details)
        self._check_files(session_id)

    def complete_turn(
        self,
        user: str,
        assistant: str,
        session_id: str,
        transcript: Sequence[Mapping[str, Any]] | None,
        author: Author,
    ) -> None:
        """Publish a completed turn in its author's scope.

        A turn that was undone, or that consists only of Hermes's own text, is skipped.
        """
        scope = author_scope(self.scope, author)
        if self._unplaced and self._unplaced.message == user:
            self._place_turn(session_id)
        with self._lock:
            session_id = self._tracker.resolve(session_id)
            self._speakers.completed(session_id, scope, user)
        session = self._session(session_id, scope)
        text = scaffolding.user_text(user)
        if text.strip() and assistant.strip():
            slot = self._slot(session_id)
            begun = self._shared.turns.over(
                slot, scope, text, lambda: self._answer_stands(session_id, assistant)
            )
            spent = self._meter.turn(session_id, user)
            if begun is None:
                return
            turn = stored_turns.find_turn(transcript, user)
            receipt = self._publish_turn(session, text, assistant, turn, spent, author)
            self._answers[session.slot] = assistant
            drop_oldest(self._answers, _MAX_REMEMBERED)
            self._shared.turns.published(slot, receipt.event_id, begun)
        if transcript:
            self._shared.injected.note_window(self._slot(session_id), transcript)
        self._check_files(session_id)

    def _publish_turn(
        self,
        session: Session,
        user: str,
        assistant: str,
        turn: stored_turns.TranscriptTurn,
        spent: TurnUsage,
        author: Author,
    ) -> Receipt:
        room = self._settings.event_max_bytes - _OVERHEAD_BYTES
        left = (
            room - len(user.encode("utf-8", "replace")) - len(assistant.encode("utf-8", "replace"))
        )
        details: dict[str, Any] = {
            "ordinal": turn.ordinal,
            "user_name": author.name or (self._details_of(session.scope).get("user_name", "")),
            "synthetic": author.is_bot or scaffolding.is_by_host(user),
            "model": spent.model,
            "tokens_in": spent.tokens_in,
            "tokens_out": spent.tokens_out,
            "cost": spent.cost,
        }
        messages = stored_turns.bounded_messages(turn.messages, left)
        try:
            return session.turn_completed(user, assistant, messages=messages, **details)
        except EventTooLarge:  # publish the two texts alone, shortened and marked as such
            half = room // 2
            return session.turn_completed(
                stored_turns.clip_text(user, half),
                stored_turns.clip_text(assistant, half),
                **details,
            )

    # -- recall -----------------------------------------------------------------------------------

    def system_prompt(self) -> str:
        """Return what providers add to the system prompt of the agent's session.

        Hermes calls this before it reports the turn, while a ``/new`` may still wait in its queue:
        so the hint of the thread names the session. During a compression the hint of that thread
        may be old, and Hermes reports the switch later; but the lineage is the same.
        """
        with self._lock:
            compressing = self._compressing == self._calling_thread()
            session_id = self._tracker.enter("" if compressing else self._hint() or "")
        session = self._session(session_id)
        return session.system_prompt(known=self._files.prompt_text() if self._files else "")

    def prefetch(self, query: str, session_id: str) -> str:
        """Return the memories for a new turn's prompt that its window does not contain yet.

        It waits for providers as `Session.prefetch` does. It returns "" if nothing fits the prompt.
        A session's first prompt that only greets gets what is known of the person.
        """
        self._place_turn(session_id)
        session = self._turn_session(session_id)
        slot, injected = self._slot(session.id), self._shared.injected
        sections = session.recalled_lines(scaffolding.user_text(query), known=injected.spoken(slot))
        return session.shown(injected.take(slot, sections, self._settings.turn_budget))

    def queue_prefetch(self, query: str, session_id: str) -> None:
        """Ask ahead of the next turn, from both sides of the last one."""
        session = self._session(self._session_id_of(session_id), self._speakers.last)
        answer = self._answers.pop(session.slot, "")
        session.queue_prefetch(scaffolding.user_text(query), answer)

    # -- memory -----------------------------------------------------------------------------------

    def publish_memory_write(
        self, action: str, target: str, content: str, metadata: Mapping[str, Any]
    ) -> None:
        """Publish a write of Hermes's memory tool, unless it was found in the file already."""
        named = str(metadata.get("session_id") or "")
        self._place_turn(named)
        session_id = self._session_id_of(named)
        call = str(metadata.get("tool_call_id") or "")
        write = file_write(action, target, content, metadata)
        index = self._write_index(session_id, call)
        if self._files is None:
            self._publish_write(session_id, write, call, index, metadata)
            return
        with self._files.writing(write) as fresh:
            if fresh:
                self._publish_write(session_id, write, call, index, metadata)

    def _publish_write(
        self,
        session_id: str,
        write: FileWrite,
        call: str,
        index: int,
        metadata: Mapping[str, Any],
    ) -> None:
        self._turn_session(session_id).memory_written(
            write.action,
            write.content,
            store=write.store,
            old_text=write.old_text,
            tool_call_id=call,
            index=index,
            provenance=provenance(metadata),
        )

    def _write_index(self, session_id: str, call: str) -> int:
        """Return the number of a write in its tool call; a batch calls the hook once per write."""
        with self._lock:
            index = self._writes.pop((session_id, call), 0)
            self._writes[(session_id, call)] = index + 1
            drop_oldest(self._writes, _MAX_REMEMBERED)
        return index

    def _check_files(self, session_id: str) -> None:
        """Publish changes of the memory files that no hook reported."""
        if self._files is not None:
            self._files.publish_changes(self._session(session_id))

    # -- tools, delegations -----------------------------------------------------------------------

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        self._place_turn()
        session = self._turn_session()
        event_id = self._shared.bus.new_id()
        self._shared.turns.published(self._slot(session.id), event_id)
        return session.call_tool(
            tool, arguments, timeout=self._settings.tool_wait, event_id=event_id
        )

    def publish_delegation(
        self, task: str, result: str, child: str, told: Mapping[str, Any]
    ) -> None:
        """Publish the result of a sub-agent, and its usage."""
        room = (self._settings.event_max_bytes - _OVERHEAD_BYTES) // 2
        session = self._turn_session()
        spent = self._meter.delegation(child, delegation_usage(told))
        receipt = session.delegated(
            stored_turns.clip_text(task, room),
            stored_turns.clip_text(result, room),
            child_session=child,
            model=spent.model,
            tokens_in=spent.tokens_in,
            tokens_out=spent.tokens_out,
            tool_count=spent.tool_count,
        )
        self._shared.turns.published(self._slot(session.id), receipt.event_id)

    # -- how sessions continue ---------------------------------------------------------------------

    def save_before_compression(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Publish, with fsync, the messages that leave the window; return what providers add."""
        self._place_turn()
        with self._lock:
            self._drop_held_end()
            self._compressing = self._calling_thread()
            session = self._turn_session(self._tracker.now)
            messages = self._speakers.own(session.id, session.scope, messages)
        room = self._settings.event_max_bytes - _OVERHEAD_BYTES
        return session.contributions(
            [
                kept
                for m in messages
                if isinstance(m, Mapping)
                for kept in stored_turns.bounded_messages([m], room)
            ],
            compression_count=session.ref.epoch,
            timeout=self._settings.compress_wait,
        )

    def end_session(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Publish the session's end; during a compression hold it back until the outcome is known.

        A compression calls this hook once, on its own thread. Then Hermes either switches the
        session, or continues without calling a hook because it rejected the result of the
        compression. The end of an agent that only compresses is not the conversation's.
        """
        if self._compressed and not self._spoken:
            return
        with self._lock:
            settled = self._tracker.settled
            scopes = (self.scope, *self._speakers.others(settled))
            ends = [(self._session(settled, scope), len(messages)) for scope in scopes]
            if self._compressing == self._calling_thread():
                self._compressing, self._held = None, ends
                return
            self._held = []
        self._check_files(settled)
        _publish_ends(ends)

    def switch_session(
        self, new_id: str, parent: str, *, reset: bool, rewound: bool, reason: str
    ) -> None:
        """Follow Hermes to another session, or to the next epoch of this one."""
        with self._lock:
            left = parent or (new_id if rewound else self._tracker.settled)
            self._settle_held_end(left, reason, reset=reset)
            slot = recall_slot(self.scope, new_id)
            step = session_tracker.decide_step(
                left,
                new_id,
                reset=reset,
                rewound=rewound,
                reason=reason,
                early=slot in self._early,
                known=self._shared.knows(self.scope, new_id),
                there=self._tracker.settled == new_id,
            )
            if step == "link":
                self._early.pop(slot, None)
            self._compressed = self._compressed or step == "compress"
            if step == "compress" and new_id != left:
                self._meter.moved(left, new_id)
            undone = self._find_undone(left) if step == "rewind" else {}
            self._take_step(step, left, new_id, undone)
            self._tracker.switch(new_id, new_id if rewound else parent, reset=reset)

    def close(self, hurry: float = 0.0) -> None:
        """Publish an end that was held back; the bus belongs to the process and stays open.

        Args:
            hurry: seconds to wait until Redis has taken what was published.
        """
        with self._lock:
            self._publish_held_end()
            if self._spoken:
                self._shared.turns.leave(self._slot(self._tracker.now))
        if hurry:
            self._shared.bus.hurry(hurry)

    # -- what was undone --------------------------------------------------------------------------

    def _take_step(
        self,
        step: session_tracker.SwitchStep,
        left: str,
        new_id: str,
        undone: Mapping[Scope, tuple[str, ...]],
    ) -> None:
        """Apply a step to the sessions of all people in the chat; each person has one."""
        others = self._speakers.others(left) if step in session_tracker.SHARED_STEPS else []
        for scope in dict.fromkeys((self.scope, *others, *undone)):
            session = self._session(left, scope)
            session_tracker.publish_step(step, self._shared, session, new_id, undone.get(scope, ()))
        if step in session_tracker.SHARED_STEPS:
            self._speakers.moved(left, new_id)

    def _find_undone(
        self, session_id: str, *, told: bool = True
    ) -> Mapping[Scope, tuple[str, ...]]:
        """Return the events of the turns that were undone since the last call, by author."""
        taken = read_taken_back(self._home, session_id) if self._home else None
        return self._shared.turns.undo(self._slot(session_id), taken, told=told)

    def _retract_unreported(self, session_id: str) -> None:
        """Retract turns that were taken back without a hook, by `/retry` or a gateway's `/undo`."""
        if self._shared.turns.may_be_undone(self._slot(session_id)):
            undone = self._find_undone(session_id, told=False)
            if undone:
                self._take_step("rewind", session_id, session_id, undone)

    def _publish_left(self, session_id: str) -> None:
        """Publish turns that were answered after their instance was shut down.

        Since 0.21 Hermes's manager rejects what is handed to it once its shutdown has begun.
        """
        slot, home, room = self._slot(session_id), self._home, self._settings.event_max_bytes
        if home is None:
            return
        for turn, end in self._shared.turns.find_left(
            slot, lambda: read_stored_turns(home, session_id, room)
        ):
            user, answer, messages = mask_as_host((end.user, end.assistant, end.messages))
            session = self._session(session_id, turn.scope)
            receipt = session.turn_completed(user, answer, messages=messages, at=end.at)
            self._shared.turns.published(slot, receipt.event_id, turn)

    def _answer_stands(self, session_id: str, assistant: str) -> bool:
        """Whether an answer is in Hermes's transcript and not undone; in doubt, return True."""
        return self._home is None or answer_stands(self._home, session_id, assistant)

    # -- within -----------------------------------------------------------------------------------

    def _calling_thread(self) -> int:
        """Return Hermes's thread that calls; always 0 in a plugin host, which does not know it."""
        return 0 if self._hint() is None else threading.get_ident()

    def _drop_held_end(self) -> None:
        """Drop an end that was held back for a compression, because the session continues."""
        self._compressing, self._held = None, []

    def _settle_held_end(self, left: str, reason: str, *, reset: bool) -> None:
        """Decide by a switch whether an end that was held back is published or dropped.

        If the switch leaves another session, the end stays held back: the switch that leaves its
        session is still in Hermes's queue, after an end of its own.
        """
        if reset:
            if any(session.id == left for session, _ in self._held):
                self._publish_held_end()
        elif reason == "compression":
            self._drop_held_end()
        else:
            self._held = []

    def _publish_held_end(self) -> None:
        """Publish an end that was held back, because the agent has left the session."""
        ends, self._held = self._held, []
        _publish_ends(ends)

    def _session_id_of(self, explicit: str) -> str:
        with self._lock:
            return self._tracker.resolve(explicit)

    def _session(self, session_id: str, scope: Scope | None = None) -> Session:
        """Return a session; note an unknown one as early, before Hermes reports the switch to it.

        Args:
            scope: its scope; that of `initialize` if None.
        """
        scope = scope or self.scope
        with self._lock:
            if not self._shared.knows(scope, session_id):
                self._early[recall_slot(scope, session_id)] = None
                drop_oldest(self._early, _MAX_REMEMBERED)
            return self._shared.session(scope, session_id, self._details_of(scope))

    def _turn_session(self, session_id: str = "") -> Session:
        """Return a session in the scope of the person whose turn is running."""
        return self._session(self._session_id_of(session_id), self._speakers.now)

    def _details_of(self, scope: Scope) -> Mapping[str, str]:
        """Return the details of the sessions; for another author without the personal ones."""
        if scope == self.scope:
            return self._details
        return {
            name: told
            for name, told in self._details.items()
            if name not in scopes.PERSONAL_DETAILS
        }

    def _slot(self, session_id: str) -> str:
        return recall_slot(self.scope, session_id)


def _publish_ends(ends: Sequence[tuple[Session, int]]) -> None:
    for session, count in ends:
        session.ended(message_count=count)
