"""LangChain's agents on the bus: a middleware that recalls for each turn, and publishes it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from memorybus import MemoryBus, Session, TurnDetails
from memorybus.errors import EventTooLarge, InvalidEvent, MemoryBusError

from memorybus_frameworks import naming_extra
from memorybus_frameworks.prompts import TurnRecall

with naming_extra("LangChain", "langgraph"):
    from langchain.agents.middleware import (
        AgentMiddleware,
        AgentState,
        ModelRequest,
        ModelResponse,
        Runtime,
    )
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        HumanMessage,
        convert_to_openai_messages,
    )

_logger = logging.getLogger("memorybus.frameworks")


def user_in_context(runtime: Runtime[Any]) -> str:
    """Return the ``user_id`` of a run's context.

    Raises:
        InvalidEvent: the run names no person. None is assumed: memories would be shared.
    """
    context, name = runtime.context, "user_id"
    user = context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)
    if not isinstance(user, str) or not user:
        raise InvalidEvent("the run names no person: invoke it with context={'user_id': …}")
    return user


class MemoryMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Recalls for each prompt what is known of its person, and publishes each turn once.

    Memories are shown to the model and enter neither the state nor a checkpoint. A failure of
    memory is logged, and the agent goes on (G9).

    Args:
        bus: the bus.
        agent: the agent's identity. If it or the next one is None, the settings give it.
        workspace: the project or team.
        user: returns the person of a run.
    """

    def __init__(
        self,
        bus: MemoryBus,
        *,
        agent: str | None = None,
        workspace: str | None = None,
        user: Callable[[Runtime[Any]], str] = user_in_context,
    ) -> None:
        super().__init__()
        self._user = user

        def open_session(user: str, thread: str) -> tuple[Session, TurnRecall]:
            owner = bus.session(
                thread,
                agent=agent,
                user=user,
                workspace=workspace,
                platform="langgraph",
                warm=False,
            )
            return owner, TurnRecall()

        self._open = lru_cache(maxsize=1_024)(open_session)

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Call the model with the person's memories before the prompt."""
        return handler(self._with_memories(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Do what `wrap_model_call` does, without blocking the loop."""
        return await handler(await asyncio.to_thread(self._with_memories, request))

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Publish the turn that has ended."""
        person = self._person(runtime)
        try:
            _publish(self._open(*person)[0], _last_turn(state["messages"]))
        except MemoryBusError as error:
            _logger.error("a turn was not published: %s", error)  # noqa: TRY400  no traceback

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Do what `after_agent` does, without blocking the loop."""
        await asyncio.to_thread(self.after_agent, state, runtime)

    def _person(self, runtime: Runtime[Any]) -> tuple[str, str]:
        """Return the person and the conversation of a run."""
        info = runtime.execution_info
        thread = info and (info.thread_id or info.run_id)
        if not thread:
            raise InvalidEvent(
                "the run names no conversation: invoke it with "
                "config={'configurable': {'thread_id': …}}"
            )
        return self._user(runtime), thread

    def _with_memories(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        person = self._person(request.runtime)
        messages = list(request.messages)
        at = next((n for n in reversed(range(len(messages))) if _is_prompt(messages[n])), -1)
        if at < 0:
            return request
        prompt, known = messages[at], [str(message.text) for message in messages[:at]]
        try:
            session, recall = self._open(*person)
            block = recall.block(session, str(prompt.id), str(prompt.text), known)
        except MemoryBusError as error:
            _logger.error("nothing was recalled: %s", error)  # noqa: TRY400  no traceback
            return request
        if block:
            messages[at] = prompt.model_copy(update={"content": _under(block, prompt.content)})
        return request.override(messages=messages)


def _under(block: str, content: str | list[Any]) -> str | list[Any]:
    """Return a prompt below its memories, in one message: not every model takes two in a row."""
    if isinstance(content, str):
        return f"{block}\n\n{content}"
    return [{"type": "text", "text": block}, *content]


def _is_prompt(message: BaseMessage) -> bool:
    """Whether a person said it: a summary of the conversation looks the same."""
    return isinstance(message, HumanMessage) and "lc_source" not in message.additional_kwargs


def _last_turn(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the last prompts that follow each other, with what came after."""
    start = len(messages)
    while start and not _is_prompt(messages[start - 1]):
        start -= 1
    while start and _is_prompt(messages[start - 1]):
        start -= 1
    return list(messages[start:])


def _publish(session: Session, turn: Sequence[BaseMessage]) -> None:
    """Publish a turn; its id follows from its prompt's, which a run that goes on keeps (G2)."""
    prompts = [message for message in turn if _is_prompt(message)]
    if not prompts:
        return
    answers = [message for message in turn if isinstance(message, AIMessage)]
    usage = [message.usage_metadata for message in answers if message.usage_metadata]
    user = "\n".join(str(prompt.text) for prompt in prompts)
    assistant = str(answers[-1].text) if answers else ""
    event_id = session.event_id("turn", str(prompts[-1].id))
    details = TurnDetails(
        model=str(answers[-1].response_metadata.get("model_name", "")) if answers else "",
        tokens_in=sum(each["input_tokens"] for each in usage),
        tokens_out=sum(each["output_tokens"] for each in usage),
    )
    try:
        messages = convert_to_openai_messages(turn)
        session.turn_completed(user, assistant, messages=messages, event_id=event_id, **details)
    except (EventTooLarge, ValueError):  # long outputs of tools, or files that have no form there
        session.turn_completed(user, assistant, event_id=event_id, **details)
    session.queue_prefetch(user, assistant)
