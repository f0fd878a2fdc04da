"""The OpenAI Agents SDK on the bus: a session whose history is the log, and recall for prompts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec
from memorybus import KeyHistory, MemoryBus, Session
from memorybus.errors import EventTooLarge, LogError, install_command
from memorybus.events import Envelope, SessionStarted, SessionSwitched, TurnCompleted
from memorybus.ids import text_digest

from memorybus_frameworks import openai_items
from memorybus_frameworks.openai_items import Item, words_of
from memorybus_frameworks.prompts import TurnRecall

try:
    from agents import Agent, RunContextWrapper, RunHooks, Tool
    from agents.items import TResponseInputItem
    from agents.memory import SessionABC, SessionSettings
    from agents.run import CallModelData, ModelInputData
    from agents.tool_context import ToolContext
except ImportError as error:
    remedy = install_command("openai-agents")
    raise ImportError(f"the OpenAI Agents SDK is missing ({error}); run: {remedy}") from error

_T = TypeVar("_T")
_Wrapper = RunContextWrapper[Any] | None
_TYPES = (TurnCompleted.__name__, SessionStarted.__name__)
_SPEAKERS = ("user", "assistant")
_BEGUN = {"history": "openai-agents"}
"""The mark of the event before which a conversation has no items."""


class _Part(msgspec.Struct, frozen=True):
    """The items that one event has brought, in a run that the caller has named, or not ("")."""

    event_id: str
    items: list[Item]
    run: str = ""


class MemorySession(SessionABC):
    """A conversation of one person with one agent: the SDK's `Session`, kept in the log.

    A turn is published once it is complete, with its calls of tools, or waits for a person. What a
    run that died left incomplete is void. Removing items takes back what was learned from them;
    clearing and compaction empty only the window.

    Args:
        bus: the bus.
        session: the conversation, from ``bus.session(id, agent=…, user=…)``.
        run_id: names one run, for example by the request: a run that is repeated under its name
            sees the history as it was, and publishes nothing twice.
    """

    session_settings: SessionSettings | None = None

    def __init__(self, bus: MemoryBus, session: Session, *, run_id: str = "") -> None:
        self.session_id = session.id
        self.session = session
        self._bus = bus
        self._past = KeyHistory(bus, session.key, session.scope, _TYPES, self._begins)
        self._run_id = run_id
        self._lock = threading.Lock()
        self._recall = TurnRecall()
        self._parts: list[_Part] | None = None
        self._replayed: list[_Part] = []
        self._open: list[Item] = []
        self._cleared: list[Item] = []

    async def get_items(
        self, limit: int | None = None, *, wrapper: _Wrapper = None
    ) -> list[TResponseInputItem]:
        """Return the window; raises `LogError` if the log cannot be read and never was before."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        items = await self._locked(self._read)
        shown = items if limit is None else items[max(0, len(items) - limit) :]
        return cast("list[TResponseInputItem]", shown)

    async def add_items(self, items: list[TResponseInputItem], *, wrapper: _Wrapper = None) -> None:
        """Add items; a turn that they complete is accepted, as `Session.turn_completed` says."""
        await self._locked(lambda: self._add(cast("list[Item]", items), wrapper))

    async def pop_item(self, *, wrapper: _Wrapper = None) -> TResponseInputItem | None:
        """Remove the last item and return it; its turn is taken back."""
        return cast("TResponseInputItem | None", await self._locked(self._pop))

    async def clear_session(self, *, wrapper: _Wrapper = None) -> None:
        """Empty the window; memories stay."""
        await self._locked(self._clear)

    async def recall(self, data: CallModelData[Any]) -> ModelInputData:
        """Put fenced memories before the prompt: ``RunConfig(call_model_input_filter=…)``."""
        items = cast("list[Item]", data.model_data.input)
        at = max((n for n, item in enumerate(items) if item.get("role") == "user"), default=0)
        prompt, known = words_of(items[at : at + 1], "user"), words_of(items[:at], *_SPEAKERS)
        ask = (self.session, str(at), "\n".join(prompt), known)
        block = await asyncio.to_thread(self._recall.block, *ask) if prompt else ""
        fenced: list[Item] = [{"role": "user", "content": block}] if block else []
        shown = cast("list[TResponseInputItem]", [*items[:at], *fenced, *items[at:]])
        return ModelInputData(input=shown, instructions=data.model_data.instructions)

    async def _locked(self, act: Callable[[], _T]) -> _T:
        def run() -> _T:
            with self._lock:
                return act()

        return await asyncio.to_thread(run)

    def _begins(self, envelope: Envelope) -> bool:
        """Whether nothing before an event belongs to the window."""
        event = envelope.event
        if isinstance(event, SessionStarted):
            begins = event.details == _BEGUN
        else:
            begins = isinstance(event, SessionSwitched) and event.reason == "compression"
        return begins and envelope.session.id == self.session_id

    def _read(self) -> list[Item]:
        self._refresh()
        parts = [part for part in self._parts or () if part not in self._replayed]
        published = [item for part in parts for item in part.items]
        return openai_items.without_orphans([*published, *self._open])

    def _refresh(self) -> None:
        """Read what every process has published; without Redis, keep what is known."""
        first = self._parts is None
        try:
            own = [e for e in self._past.events() if e.session.id == self.session_id]
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

    def _add(self, items: list[Item], wrapper: _Wrapper) -> None:
        if self._parts is None:
            self._refresh()
        before, self._cleared = self._cleared, []
        if any(item.get("type") == "compaction" for item in items) or (items and items == before):
            self._publish(items, None, window=True)
            return
        for turn in openai_items.split_turns(items):
            self._take(turn, wrapper)

    def _take(self, items: list[Item], wrapper: _Wrapper) -> None:
        """Add a part of a turn; publish the turn if it is complete now."""
        prompt = words_of(items, "user")
        if prompt and self._open:
            if prompt != words_of(self._open, "user"):
                self._publish_all(self._open, None)
            self._open = []  # a run that is repeated: what its first try left is void
        opened = [*self._open, *items]
        if openai_items.is_complete(opened):
            self._publish_all(opened, wrapper)
            opened = []
        self._open = opened

    def _publish_all(self, items: list[Item], wrapper: _Wrapper) -> None:
        """Publish items; in parts if they are too large for one event."""
        try:
            self._publish(items, wrapper)
        except EventTooLarge:
            half = len(items) // 2
            if not half:
                raise
            self._publish_all(items[:half], None)
            self._publish_all(items[half:], wrapper)

    def _publish(self, items: list[Item], wrapper: _Wrapper, *, window: bool = False) -> None:
        """Publish items with their words; those of a window were learned before."""
        parts = self._parts = self._parts or []
        if self._replayed and not window:
            self._replayed.pop(0)  # this run published it before it was repeated
            return
        user, answers = words_of(items, "user"), words_of(items, "assistant")
        words = ("", "") if window else ("\n".join(user), answers[-1] if answers else "")
        run = ("run", self._run_id, sum(part.run == self._run_id for part in parts))
        event_id = self.session.event_id(*run) if self._run_id else ""
        receipt = self.session.turn_completed(
            *words,
            messages=[{"item": i} if window else openai_items.message_of(i) for i in items],
            ordinal=len(parts),
            event_id=event_id,
            source_id=self._run_id,
            tokens_in=wrapper.usage.input_tokens if wrapper else 0,
            tokens_out=wrapper.usage.output_tokens if wrapper else 0,
        )
        parts.append(_Part(receipt.event_id, items, self._run_id))
        self.session.queue_prefetch(*words)

    def _pop(self) -> Item | None:
        if not self._open:
            self._refresh()
            if not self._parts:
                return None
            last = self._parts.pop()
            self.session = self.session.undo(last.event_id)
            self._open = list(last.items)
        return self._open.pop()

    def _clear(self) -> None:
        self._cleared = self._read()
        self._parts, self._open = [], []
        self.session = self.session.compressed()


class MemoryHooks(RunHooks[Any]):
    """Publishes handoffs, and agents that are called as tools, as delegations (each once: G2)."""

    def __init__(self, memory: MemorySession) -> None:
        self._memory = memory

    async def on_handoff(
        self, context: RunContextWrapper[Any], from_agent: Agent[Any], to_agent: Agent[Any]
    ) -> None:
        """Publish that an agent takes over; what it answers is in the turn."""
        task = f"{from_agent.name} handed the conversation over to {to_agent.name}"
        mark = text_digest(str(context.turn_input))
        await self._publish(task, "", mark)

    async def on_tool_end(
        self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object
    ) -> None:
        """Publish what an agent was asked and answered as a tool."""
        if getattr(tool, "_is_agent_tool", False) and isinstance(context, ToolContext):
            await self._publish(context.tool_arguments, str(result), context.tool_call_id)

    async def _publish(self, task: str, result: str, mark: str) -> None:
        session = self._memory.session
        event_id = session.event_id("delegated", task, mark)
        await asyncio.to_thread(session.delegated, task, result, event_id=event_id)
