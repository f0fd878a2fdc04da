"""Makes a model's call of a memory tool: as an event if it writes, as a job if it only reads.

Every failure is returned as a JSON object that describes it, because a model can read that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from memorybus.agent.port import PublishingSession, SessionBus
from memorybus.errors import InvalidEvent, MemoryBusError
from memorybus.events import ToolCalled
from memorybus.jobs.waiting import AwaitedReplies, ReceivedReplies, Reply
from memorybus.recall.model import written_partitions
from memorybus.redis.keys import Keys, partition_of
from memorybus.registry.tools import Tool
from memorybus.text.cleaning import clean_text

START_HINT = "start one: memorybus up (or memorybus worker)"


def call_tool(
    bus: SessionBus,
    session: PublishingSession,
    offered: str,
    arguments: Mapping[str, Any],
    timeout: float,
    event_id: str = "",
) -> dict[str, Any]:
    tool = bus.tools().named(offered) if isinstance(offered, str) else None
    if tool is None:
        return failed_result(f"memory has no tool {str(offered)[:64]!r}")
    try:
        plain, wait = _plain_arguments(arguments), _checked_seconds(timeout)
        if tool.writes:
            return _call_writing_tool(bus, session, tool, plain, wait, event_id)
        return _call_reading_tool(bus, session, tool, plain, wait)
    except MemoryBusError as error:
        return failed_result(str(error))


def failed_result(why: str, **more: Any) -> dict[str, Any]:
    return {"ok": False, "error": why, **more}


def _checked_seconds(timeout: object) -> float:
    if isinstance(timeout, int | float):
        return timeout
    raise InvalidEvent(f"`timeout` takes seconds, not this {type(timeout).__name__}")


def _plain_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as plain JSON values, with texts cleaned as in any event."""
    try:
        body = msgspec.json.encode(_clean(arguments))
        return msgspec.json.decode(body, type=dict[str, Any])
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidEvent(f"the arguments are no JSON object: {error}") from error


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {_clean(key): _clean(inner) for key, inner in value.items()}
    return [_clean(inner) for inner in value] if isinstance(value, list | tuple) else value


# -- tools that write -----------------------------------------------------------------------------


def _call_writing_tool(
    bus: SessionBus,
    session: PublishingSession,
    tool: Tool,
    arguments: dict[str, Any],
    timeout: float,
    event_id: str,
) -> dict[str, Any]:
    event = ToolCalled(
        provider=tool.provider, tool=tool.name, arguments=arguments, wants_reply=True
    )
    receipt = session.publish(event, event_id)
    partition = _partition(bus, session)

    def ask(redis: Any) -> AwaitedReplies:
        served = tool.provider in _roster(bus, redis).served_providers()
        why = "" if served else f"no live worker serves {tool.provider}; {START_HINT}"
        return AwaitedReplies(partition, [receipt.event_id], [tool.provider], why)

    heard = bus.listener.wait_for_replies(ask, timeout)
    reply = _first_reply(heard, tool)
    if reply is None:
        why = heard.problem or f"no answer within {timeout:g} s"
        return failed_result(
            f"{why}; the call is recorded and will be applied later", recorded=True
        )
    return _build_result(reply, tool, recorded=True)


# -- tools that only read -------------------------------------------------------------------------


def _call_reading_tool(
    bus: SessionBus,
    session: PublishingSession,
    tool: Tool,
    arguments: dict[str, Any],
    timeout: float,
) -> dict[str, Any]:
    until = bus.clock.monotonic() + timeout
    if bus.problem or not bus.flush("logged", timeout / 2):
        # The tool would run without the session's last events, or not at all.
        return failed_result(
            f"memory cannot be reached now: {bus.problem or 'it is slow to take events'}"
        )
    partition, call_id = _partition(bus, session), bus.new_id()

    def ask(redis: Any) -> AwaitedReplies:
        from memorybus.jobs.tools import ToolRequest, ask_tool

        request = ToolRequest(
            id=call_id,
            partition=partition,
            provider=tool.provider,
            tool=tool.name,
            arguments=arguments,
            scope=session.scope,
            session=session.ref,
            reads_after=written_partitions(session.scope, session.ref, bus.settings.partitions),
        )
        why = ask_tool(redis, bus.settings, request, timeout)
        return AwaitedReplies(partition, [call_id], [tool.provider], why)

    heard = bus.listener.wait_for_replies(ask, until - bus.clock.monotonic())
    reply = _first_reply(heard, tool)
    if reply is None:
        return failed_result(
            heard.problem or f"{tool.provider} gave no answer within {timeout:g} s"
        )
    return _build_result(reply, tool)


# -- answers --------------------------------------------------------------------------------------


def _first_reply(heard: ReceivedReplies, tool: Tool) -> Reply | None:
    return next(iter(heard.replies.get(tool.provider, ())), None)


def _build_result(reply: Reply, tool: Tool, **more: Any) -> dict[str, Any]:
    """Return a tool's result as a JSON object; any other JSON value is put under ``result``."""
    if reply.error:
        return failed_result(f"{tool.offered}: {reply.error}", **more)
    try:
        result = msgspec.json.decode(reply.text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return failed_result(f"{tool.offered}: its result is no JSON", **more)
    return result if isinstance(result, dict) else {"result": result}


def _partition(bus: SessionBus, session: PublishingSession) -> int:
    return partition_of(session.key, bus.settings.partitions)


def _roster(bus: SessionBus, redis: Any) -> Any:
    from memorybus.registry.roster import Roster

    return Roster(redis, Keys(bus.settings.namespace))
