"""What one memory provider instance of Hermes does: its place, and what it publishes and reads.

Every method makes one local write at most (G9), the end of a turn two, but `prefetch`,
`compressing` and `call`, which wait with a deadline. Methods raise what the bus raises;
`provider.HermesMemory` keeps that from Hermes.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from memorybus import Receipt, Session, recall_slot
from memorybus.errors import EventTooLarge
from memorybus.events import Scope
from memorybus.surfaces.hermes import scopes
from memorybus.surfaces.hermes.entries import FileWrite
from memorybus.surfaces.hermes.plugin import switches
from memorybus.surfaces.hermes.plugin.memory_tool import provenance, written
from memorybus.surfaces.hermes.plugin.session_tracker import SessionTracker
from memorybus.surfaces.hermes.plugin.shared import SharedBus
from memorybus.surfaces.hermes.plugin.speakers import Speakers
from memorybus.surfaces.hermes.plugin.undone import stands, taken_back
from memorybus.surfaces.hermes.plugin.usage import (
    TurnUsage,
    UsageMeter,
    delegation_usage,
    turn_start_details,
)
from memorybus.surfaces.hermes.scopes import Author, of_author
from memorybus.surfaces.hermes.transcripts import scaffolding, turns

_REMEMBERED = 256
"""Memory tool calls whose writes are counted, and sessions whose switch is awaited (G10)."""

_OVERHEAD = 4_096
"""Bytes of an event that are neither texts nor messages."""


class HermesConversation:
    """The state of one instance. Safe to call from any thread.

    Attributes:
        scope: who its sessions belong to.
    """

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
        hint: Callable[[], str],
    ) -> None:
        """Start or go on with the session that Hermes names."""
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
        self._answers: OrderedDict[str, str] = OrderedDict()  # of turns that recall is asked after
        self._compressing: int | None = None  # the thread of a compression that was announced
        self._held: list[tuple[Session, int]] = []
        shared.begin(scope, session_id, title, details)
        self._undo_untold(session_id)
        self._look(session_id)

    @property
    def place(self) -> str:
        """The session the agent is in."""
        return self._tracker.now

    # -- turns ------------------------------------------------------------------------------------

    def turn_started(
        self, number: int, message: str, author: Author, told: Mapping[str, Any]
    ) -> None:
        """Note where the agent is now, and who has spoken."""
        scope = of_author(self.scope, author)
        with self._lock:
            session_id = self._tracker.turn_started(self._hint())
            self._speakers.started(session_id, scope, message)
            self._goes_on()
        session, said = self._session(session_id, scope), scaffolding.user_text(message)
        details = turn_start_details(told)
        self._meter.begins(session_id, message, details.get("model", ""))
        self._shared.turns.begin(self._slot(session_id), scope, said)
        session.turn_started(said, number=number, **details)
        self._look(session_id)

    def synced(
        self,
        user: str,
        assistant: str,
        session_id: str,
        transcript: Sequence[Mapping[str, Any]] | None,
        author: Author,
    ) -> None:
        """Publish a completed turn as its author's.

        One that is undone, or of nothing but scaffolding, is skipped.
        """
        scope = of_author(self.scope, author)
        with self._lock:
            session_id = self._tracker.named(session_id)
            self._speakers.completed(session_id, scope, user)
        session = self._session(session_id, scope)
        said = scaffolding.user_text(user)
        if said.strip() and assistant.strip():
            slot = self._slot(session_id)
            begun = self._shared.turns.over(
                slot, scope, said, lambda: self._stands(session_id, assistant)
            )
            spent = self._meter.turn(session_id, user)
            if begun is None:
                return
            turn = turns.turn_of(transcript, user)
            receipt = self._publish_turn(session, said, assistant, turn, spent, author)
            self._answers[session.slot] = assistant
            _bound(self._answers)
            self._shared.turns.published(slot, receipt.event_id, begun)
        if transcript:
            self._shared.injected.found(self._slot(session_id), transcript)
        self._look(session_id)

    def _publish_turn(
        self,
        session: Session,
        user: str,
        assistant: str,
        turn: turns.TranscriptTurn,
        spent: TurnUsage,
        author: Author,
    ) -> Receipt:
        room = self._settings.event_max_bytes - _OVERHEAD
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
        }
        messages = turns.published(turn.messages, left)
        try:
            return session.turn_completed(user, assistant, messages=messages, **details)
        except EventTooLarge:  # the two texts alone: better shortened, and marked so, than lost
            half = room // 2
            return session.turn_completed(
                turns.clipped(user, half), turns.clipped(assistant, half), **details
            )

    # -- recall -----------------------------------------------------------------------------------

    def system_prompt(self) -> str:
        """Return what providers add to the system prompt of the session that the agent is in.

        Within a compression Hermes asks before the switch that tells of it: the same lineage.
        """
        session = self._session(self._named(""))
        return session.system_prompt(known=self._files.shown() if self._files else "")

    def prefetch(self, query: str, session_id: str) -> str:
        """Return what answers the prompt of the turn that begins and is not in its window yet.

        It waits for providers as `Session.prefetch` does. "" if nothing has to do with the prompt;
        a session's first prompt that asks nothing ("hello") gets what matters most of the person.
        """
        session = self._of_turn(session_id)
        first = self._shared.is_first(recall_slot(session.scope, session.id))
        sections = session.recalled_lines(scaffolding.user_text(query), opens=first)
        room = self._settings.turn_budget
        return self._shared.injected.take(self._slot(session.id), sections, room)

    def queue_prefetch(self, query: str, session_id: str) -> None:
        """Ask ahead of the next turn, from both sides of the last one."""
        session = self._session(self._named(session_id), self._speakers.last)
        answer = self._answers.pop(session.slot, "")
        session.queue_prefetch(scaffolding.user_text(query), answer)

    # -- memory -----------------------------------------------------------------------------------

    def memory_written(
        self, action: str, target: str, content: str, metadata: Mapping[str, Any]
    ) -> None:
        """Publish a write of Hermes's memory tool, unless the file has told of it already."""
        session_id = self._named(str(metadata.get("session_id") or ""))
        call = str(metadata.get("tool_call_id") or "")
        write = written(action, target, content, metadata)
        index = self._index(session_id, call)
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
        self._of_turn(session_id).memory_written(
            write.action,
            write.content,
            store=write.store,
            old_text=write.old_text,
            tool_call_id=call,
            index=index,
            provenance=provenance(metadata),
        )

    def _index(self, session_id: str, call: str) -> int:
        """Return the number of a write within its tool call: a batch comes as several hooks."""
        with self._lock:
            index = self._writes.pop((session_id, call), 0)
            self._writes[(session_id, call)] = index + 1
            _bound(self._writes)
        return index

    def _look(self, session_id: str) -> None:
        """Publish what changed in the memory files without a hook."""
        if self._files is not None:
            self._files.look(self._session(session_id))

    # -- tools, delegations -----------------------------------------------------------------------

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a provider's tool and wait for its result."""
        session = self._of_turn()
        event_id = self._shared.bus.new_id()
        self._shared.turns.published(self._slot(session.id), event_id)
        return session.call_tool(
            tool, arguments, timeout=self._settings.tool_wait, event_id=event_id
        )

    def delegated(self, task: str, result: str, child: str, told: Mapping[str, Any]) -> None:
        """Publish what a sub-agent did, and what it took."""
        room = (self._settings.event_max_bytes - _OVERHEAD) // 2
        session = self._of_turn()
        spent = self._meter.delegation(child, delegation_usage(told))
        receipt = session.delegated(
            turns.clipped(task, room),
            turns.clipped(result, room),
            child_session=child,
            **msgspec.structs.asdict(spent),
        )
        self._shared.turns.published(self._slot(session.id), receipt.event_id)

    # -- how sessions go on -----------------------------------------------------------------------

    def compressing(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Publish what is about to leave the window, fsynced, and return what providers add."""
        with self._lock:
            self._goes_on()
            self._compressing = threading.get_ident()
            session = self._of_turn(self._tracker.now)
            messages = self._speakers.own(session.id, session.scope, messages)
        room = self._settings.event_max_bytes - _OVERHEAD
        return session.contributions(
            [
                kept
                for m in messages
                if isinstance(m, Mapping)
                for kept in turns.published([m], room)
            ],
            compression_count=session.ref.epoch,
            timeout=self._settings.compress_wait,
        )

    def ended(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Publish an end; one that belongs to a compression is held until that is decided.

        A compression ends the session on its own thread, and once. Then Hermes switches, or goes on
        without a word: it has refused what the compression made of the messages.
        """
        with self._lock:
            settled = self._tracker.settled
            scopes = (self.scope, *self._speakers.others(settled))
            ends = [(self._session(settled, scope), len(messages)) for scope in scopes]
            if self._compressing == threading.get_ident():
                self._compressing, self._held = None, ends
                return
            self._held = []
        self._look(settled)
        _publish_ends(ends)

    def switched(
        self, new_id: str, parent: str, *, reset: bool, rewound: bool, reason: str
    ) -> None:
        """Follow Hermes to another session, or to the next epoch of this one."""
        with self._lock:
            self._decide(reason, reset=reset)
            left = parent or (new_id if rewound else self._tracker.settled)
            slot = recall_slot(self.scope, new_id)
            step = switches.step(
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
            if step == "compress" and new_id != left:
                self._meter.moved(left, new_id)
            undone = self._undone(left) if step == "rewind" else {}
            self._take(step, left, new_id, undone)
            self._tracker.switched(new_id, new_id if rewound else parent, reset=reset)

    def close(self, hurry: float = 0.0) -> None:
        """Publish an end that was held; the bus is the process's and stays open.

        Args:
            hurry: seconds that Redis has to take what was published.
        """
        with self._lock:
            self._release()
        if hurry:
            self._shared.bus.hurry(hurry)

    # -- what was undone --------------------------------------------------------------------------

    def _take(
        self, step: switches.Step, left: str, new_id: str, undone: Mapping[Scope, tuple[str, ...]]
    ) -> None:
        """Take a step with everybody's part of the session: each has a session of their own."""
        others = self._speakers.others(left) if step in switches.TOGETHER else []
        for scope in dict.fromkeys((self.scope, *others, *undone)):
            session = self._session(left, scope)
            switches.take(step, self._shared, session, new_id, undone.get(scope, ()))
        if step in switches.TOGETHER:
            self._speakers.moved(left, new_id)

    def _undone(self, session_id: str, *, told: bool = True) -> Mapping[Scope, tuple[str, ...]]:
        """Return the events of the turns that were undone since this was asked last, by author."""
        taken = taken_back(self._home, session_id) if self._home else None
        return self._shared.turns.undo(self._slot(session_id), taken, told=told)

    def _undo_untold(self, session_id: str) -> None:
        """Take back what was undone without a word: a gateway's `/undo` only drops its agent."""
        if self._shared.turns.may_be_undone(self._slot(session_id)):
            undone = self._undone(session_id, told=False)
            if undone:
                self._take("rewind", session_id, session_id, undone)

    def _stands(self, session_id: str, assistant: str) -> bool:
        """Say whether an answer stands in Hermes's transcript; in doubt, it does."""
        return self._home is None or stands(self._home, session_id, assistant)

    # -- within -----------------------------------------------------------------------------------

    def _goes_on(self) -> None:
        """The session goes on: an end that was held was a compression's, and none."""
        self._compressing, self._held = None, []

    def _decide(self, reason: str, *, reset: bool) -> None:
        """Take a switch for what it says of an end that is held."""
        if reset:
            self._release()
        elif reason == "compression":
            self._goes_on()
        else:
            self._held = []

    def _release(self) -> None:
        """The session is left for good: an end that was held was one."""
        ends, self._held = self._held, []
        _publish_ends(ends)

    def _named(self, explicit: str) -> str:
        with self._lock:
            return self._tracker.named(explicit)

    def _session(self, session_id: str, scope: Scope | None = None) -> Session:
        """Return a session; one that nobody has met is ahead of the switch that will tell of it.

        Args:
            session_id: its id.
            scope: of whom; what `initialize` was told if None.
        """
        scope = scope or self.scope
        with self._lock:
            if not self._shared.knows(scope, session_id):
                self._early[recall_slot(scope, session_id)] = None
                _bound(self._early)
            return self._shared.session(scope, session_id, self._details_of(scope))

    def _of_turn(self, session_id: str = "") -> Session:
        """Return a session as that of the person whose turn is under way there."""
        return self._session(self._named(session_id), self._speakers.now)

    def _details_of(self, scope: Scope) -> Mapping[str, str]:
        """Return what Hermes told of the sessions; of another author's, what is not a person's."""
        if scope == self.scope:
            return self._details
        return {name: told for name, told in self._details.items() if name not in scopes.PERSONAL}

    def _slot(self, session_id: str) -> str:
        return recall_slot(self.scope, session_id)


def _bound(table: OrderedDict[Any, Any]) -> None:
    while len(table) > _REMEMBERED:
        table.popitem(last=False)


def _publish_ends(ends: Sequence[tuple[Session, int]]) -> None:
    for session, count in ends:
        session.ended(message_count=count)
