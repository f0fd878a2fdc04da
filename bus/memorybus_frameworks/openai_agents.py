"""The OpenAI Agents SDK on the bus: a session whose history is the log, and recall for prompts."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from memorybus import MemoryBus, Session
from memorybus.ids import text_digest

from memorybus_frameworks import naming_extra
from memorybus_frameworks.openai_items import Item, words_of
from memorybus_frameworks.openai_window import ConversationWindow
from memorybus_frameworks.prompts import TurnRecall

with naming_extra("the OpenAI Agents SDK", "openai-agents"):
    from agents import Agent, RunContextWrapper, RunHooks, Tool, Usage
    from agents.items import TResponseInputItem
    from agents.memory import SessionABC, SessionSettings
    from agents.run import CallModelData, ModelInputData
    from agents.tool_context import ToolContext

_Wrapper = RunContextWrapper[Any] | None


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
        self._window = ConversationWindow(bus, session, run_id)
        self._recall = TurnRecall()

    @property
    def session(self) -> Session:
        """The conversation at its present place."""
        return self._window.session

    async def get_items(
        self, limit: int | None = None, *, wrapper: _Wrapper = None
    ) -> list[TResponseInputItem]:
        """Return the window; raises `LogError` if the log cannot be read and never was before."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        items = await asyncio.to_thread(self._window.read)
        shown = items if limit is None else items[max(0, len(items) - limit) :]
        return cast("list[TResponseInputItem]", shown)

    async def add_items(self, items: list[TResponseInputItem], *, wrapper: _Wrapper = None) -> None:
        """Add items; a turn that they complete is accepted, as `Session.turn_completed` says."""
        usage = wrapper.usage if wrapper else Usage()
        tokens = usage.input_tokens, usage.output_tokens
        await asyncio.to_thread(self._window.add, cast("list[Item]", items), tokens)

    async def pop_item(self, *, wrapper: _Wrapper = None) -> TResponseInputItem | None:
        """Remove the last item and return it; its turn is taken back."""
        return cast("TResponseInputItem | None", await asyncio.to_thread(self._window.pop))

    async def clear_session(self, *, wrapper: _Wrapper = None) -> None:
        """Empty the window; memories stay."""
        await asyncio.to_thread(self._window.clear)

    async def recall(self, data: CallModelData[Any]) -> ModelInputData:
        """Put fenced memories before the prompt: ``RunConfig(call_model_input_filter=…)``."""
        items = cast("list[Item]", data.model_data.input)
        at = max((n for n, item in enumerate(items) if item.get("role") == "user"), default=0)
        prompt = words_of(items[at : at + 1], "user")
        ask = (self.session, str(at), "\n".join(prompt), words_of(items[:at], "user", "assistant"))
        block = await asyncio.to_thread(self._recall.block, *ask) if prompt else ""
        fenced: list[Item] = [{"role": "user", "content": block}] if block else []
        shown = cast("list[TResponseInputItem]", [*items[:at], *fenced, *items[at:]])
        return ModelInputData(input=shown, instructions=data.model_data.instructions)


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
