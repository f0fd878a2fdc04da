"""What one memory provider instance of Hermes does: its place, and what it publishes and reads.

Every method makes one local write at most (G9), but `compressing` and `call`, which wait with a
deadline. Methods raise what the bus raises; `provider.HermesMemory` keeps that from Hermes.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from memorybus.errors import EventTooLarge
from memorybus.events import Scope
from memorybus.keys import recall_slot
from memorybus.session import Session
from memorybus.surfaces.hermes import scaffolding, switches, turns
from memorybus.surfaces.hermes.entries import Write
from memorybus.surfaces.hermes.hook_writes import provenance, written
from memorybus.surfaces.hermes.shared import Shared
from memorybus.surfaces.hermes.whose import Whose

_REMEMBERED = 256
"""Memory tool calls whose writes are counted, and sessions whose switch is awaited (G10)."""

_OVERHEAD = 4_096
"""Bytes of an event that are neither texts nor messages."""


class Compression(msgspec.Struct, frozen=True):
    """A compression that was announced: an end that fits it is none.

    Attributes:
        thread: the thread it runs on.
        messages: how many messages it began with.
    """

    thread: int
    messages: int


class Conversation:
    """The state of one instance. Safe to call from any thread.

    Attributes:
        scope: who its sessions belong to.
    """

    def __init__(
        self,
        shared: Shared,
        scope: Scope,
        session_id: str,
        *,
        title: str,
        details: Mapping[str, str],
        home: Path | None,
        hint: Callable[[], str],
    ) -> None:
        """Start or go on with the session that Hermes names."""
        self.scope = scope
        self._shared = shared
        self._settings = shared.bus.settings
        self._details = details
        self._hint = hint
        self._files = shared.files(home) if home else None
        self._lock = threading.RLock()
        self._whose = Whose(session_id)
        self._early: OrderedDict[str, None] = OrderedDict()
        self._writes: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._compression: Compression | None = None
        self._held: tuple[Session, int] | None = None
        shared.begin(scope, session_id, title, details)
        self._look(session_id)

    @property
    def place(self) -> str:
        """The session the agent is in."""
        return self._whose.now

    # -- turns ------------------------------------------------------------------------------------

    def turn_started(self, number: int, message: str) -> None:
        """Note where the agent is now, and that the person has spoken."""
        with self._lock:
            session_id = self._whose.turn_started(self._hint())
            self._release()
        session = self._session(session_id)
        session.turn_started(scaffolding.user_text(message), number=number)
        self._look(session_id)

    def synced(
        self,
        user: str,
        assistant: str,
        session_id: str,
        transcript: Sequence[Mapping[str, Any]] | None,
    ) -> None:
        """Publish a completed turn; one that only carries scaffolding is skipped."""
        session_id = self._named(session_id)
        session = self._session(session_id)
        said = scaffolding.user_text(user)
        if said.strip() and assistant.strip():
            self._publish_turn(session, said, assistant, turns.turn_of(transcript, user))
        if transcript:
            self._shared.injected.found(self._slot(session_id), transcript)
        self._look(session_id)

    def _publish_turn(self, session: Session, user: str, assistant: str, turn: turns.Turn) -> None:
        room = self._settings.event_max_bytes - _OVERHEAD
        left = (
            room - len(user.encode("utf-8", "replace")) - len(assistant.encode("utf-8", "replace"))
        )
        details: dict[str, Any] = {
            "ordinal": turn.ordinal,
            "user_name": self._details.get("user_name", ""),
            "synthetic": scaffolding.is_by_host(user),
        }
        messages = turns.published(turn.messages, left)
        try:
            session.turn_completed(user, assistant, messages=messages, **details)
        except EventTooLarge:  # the two texts alone: better shortened, and marked so, than lost
            half = room // 2
            session.turn_completed(
                turns.clipped(user, half), turns.clipped(assistant, half), **details
            )

    # -- recall -----------------------------------------------------------------------------------

    def prefetch(self, query: str, session_id: str) -> str:
        """Return what is warm for the turn that begins and not in its window yet, or "".

        Nothing was asked ahead for the first prompt of a session, as Hermes makes its agent only
        when the person has spoken: that turn asks, and waits a moment. Of a provider that has no
        answer then, what `initialize` asked for is taken, which answers to no prompt.
        """
        session = self._session(self._named(session_id))
        sections = session.warm_lines()
        if self._shared.is_first(self._slot(session.id)):
            session.ask_first(scaffolding.user_text(query), wait=self._settings.opening_wait)
            answers = [section for section in session.warm_lines() if section[1]]
            answering = {name for name, _ in answers}
            sections = answers + [one for one in sections if one[0] not in answering]
        room = self._settings.turn_budget
        return self._shared.injected.take(self._slot(session.id), sections, room)

    def queue_prefetch(self, query: str, session_id: str) -> None:
        """Ask for recall for the next turn."""
        self._session(self._named(session_id)).queue_prefetch(scaffolding.user_text(query))

    # -- memory -----------------------------------------------------------------------------------

    def memory_written(
        self, action: str, target: str, content: str, metadata: Mapping[str, Any]
    ) -> None:
        """Publish a write of Hermes's memory tool, unless the file has told of it already."""
        session_id = self._named(str(metadata.get("session_id") or ""))
        call = str(metadata.get("tool_call_id") or "")
        write = written(action, target, content, str(metadata.get("old_text") or ""))
        index = self._index(session_id, call)
        if self._files is None:
            self._publish_write(session_id, write, call, index, metadata)
            return
        with self._files.writing(write) as fresh:
            if fresh:
                self._publish_write(session_id, write, call, index, metadata)

    def _publish_write(
        self, session_id: str, write: Write, call: str, index: int, metadata: Mapping[str, Any]
    ) -> None:
        self._session(session_id).memory_written(
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
        session = self._session(self._named(""))
        return session.call_tool(tool, arguments, timeout=self._settings.tool_wait)

    def delegated(self, task: str, result: str, child: str) -> None:
        """Publish what a sub-agent did."""
        room = (self._settings.event_max_bytes - _OVERHEAD) // 2
        self._session(self._named("")).delegated(
            turns.clipped(task, room), turns.clipped(result, room), child_session=child
        )

    # -- how sessions go on -----------------------------------------------------------------------

    def compressing(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Publish what is about to leave the window, fsynced, and return what providers add."""
        with self._lock:
            self._release()
            self._compression = Compression(threading.get_ident(), len(messages))
            session = self._session(self._whose.now)
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
        """Publish an end; one that belongs to a compression is held until that is decided."""
        with self._lock:
            session = self._session(self._whose.settled)
            end = (session, len(messages))
            if self._compression == Compression(threading.get_ident(), len(messages)):
                self._held = end
                return
        self._look(session.id)
        _publish_end(end)

    def switched(
        self, new_id: str, parent: str, *, reset: bool, rewound: bool, reason: str
    ) -> None:
        """Follow Hermes to another session, or to the next epoch of this one."""
        with self._lock:
            if reason == "compression":
                self._compression = self._held = None
            left = self._session(parent or (new_id if rewound else self._whose.settled))
            step = switches.step(
                left.id,
                new_id,
                reset=reset,
                rewound=rewound,
                reason=reason,
                early=new_id in self._early,
                known=self._shared.knows(self.scope, new_id),
                there=self._whose.settled == new_id,
            )
            if step == "link":
                self._early.pop(new_id, None)
            switches.take(step, self._shared, left, new_id)
            self._whose.switched(new_id, new_id if rewound else parent, reset=reset)

    def close(self) -> None:
        """Publish an end that was held; the bus is the process's and stays open."""
        with self._lock:
            self._release()

    # -- within -----------------------------------------------------------------------------------

    def _release(self) -> None:
        """The compression announced last came to nothing: the end that was held was one."""
        end, self._held, self._compression = self._held, None, None
        if end is not None:
            _publish_end(end)

    def _named(self, explicit: str) -> str:
        with self._lock:
            return self._whose.named(explicit)

    def _session(self, session_id: str) -> Session:
        """Return a session; one that nobody has met is ahead of the switch that will tell of it."""
        with self._lock:
            if not self._shared.knows(self.scope, session_id):
                self._early[session_id] = None
                _bound(self._early)
            return self._shared.session(self.scope, session_id, self._details)

    def _slot(self, session_id: str) -> str:
        return recall_slot(self.scope, session_id)


def _bound(table: OrderedDict[Any, Any]) -> None:
    while len(table) > _REMEMBERED:
        table.popitem(last=False)


def _publish_end(end: tuple[Session, int]) -> None:
    session, count = end
    session.ended(message_count=count)
