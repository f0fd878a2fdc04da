"""A model's call of a memory tool: as an event if it writes, as a job if it only reads.

Whatever goes wrong is a JSON object that says so: a model can be told, an exception cannot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from memorybus.agent.port import PublishingSession, SessionBus
from memorybus.errors import InvalidEvent, MemoryBusError
from memorybus.events import ToolCalled
from memorybus.jobs.replies import Reply
from memorybus.jobs.waiting import AwaitedReplies, ReceivedReplies
from memorybus.recall.model import written_by
from memorybus.redis.keys import Keys, partition_of
from memorybus.registry.tools import Tool
from memorybus.text.cleaning import clean_text

START = "start one: memorybus up (or memorybus worker)"


def call(
    bus: SessionBus,
    session: PublishingSession,
    offered: str,
    arguments: Mapping[str, Any],
    timeout: float,
    event_id: str = "",
) -> dict[str, Any]:
    """Call a tool; see `Session.call_tool`."""
    tool = bus.tools().named(offered)
    if tool is None:
        return failed(f"memory has no tool {offered[:64]!r}")
    try:
        plain = _plain(arguments)
        if tool.writes:
            return _written(bus, session, tool, plain, timeout, event_id)
        return _read(bus, session, tool, plain, timeout)
    except MemoryBusError as error:
        return failed(str(error))


def failed(why: str, **more: Any) -> dict[str, Any]:
    """Return the result of a call that gave none."""
    return {"ok": False, "error": why, **more}


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as JSON has them, their texts cleaned as those of any event.

    Raises:
        InvalidEvent: they are no JSON object.
    """
    try:
        body = msgspec.json.encode(_clean(arguments))
        return msgspec.json.decode(body, type=dict[str, Any])
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidEvent(f"the arguments are no JSON object: {error}") from error


def _clean(value: Any) -> Any:
    """Return a value whose texts hold no recall that was injected, and can be written down."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {_clean(key): _clean(inner) for key, inner in value.items()}
    return [_clean(inner) for inner in value] if isinstance(value, list | tuple) else value


# -- tools that write -----------------------------------------------------------------------------


def _written(
    bus: SessionBus,
    session: PublishingSession,
    tool: Tool,
    arguments: dict[str, Any],
    timeout: float,
    event_id: str,
) -> dict[str, Any]:
    """Publish the call, then wait for the answer of the lane's owner."""
    event = ToolCalled(
        provider=tool.provider, tool=tool.name, arguments=arguments, wants_reply=True
    )
    receipt = session.publish(event, event_id)
    partition = _partition(bus, session)

    def ask(redis: Any) -> AwaitedReplies:
        served = tool.provider in _roster(bus, redis).served_providers()
        why = "" if served else f"no live worker serves {tool.provider}; {START}"
        return AwaitedReplies(partition, [receipt.event_id], [tool.provider], why)

    heard = bus.listener.wait_for_replies(ask, timeout)
    reply = _first(heard, tool)
    if reply is None:
        why = heard.problem or f"no answer within {timeout:g} s"
        return failed(f"{why}; the call is recorded and will be applied later", recorded=True)
    return _result(reply, tool, recorded=True)


# -- tools that only read -------------------------------------------------------------------------


def _read(
    bus: SessionBus,
    session: PublishingSession,
    tool: Tool,
    arguments: dict[str, Any],
    timeout: float,
) -> dict[str, Any]:
    """Have a recall process run the tool, once it has applied what this process published."""
    until = bus.clock.monotonic() + timeout
    if bus.problem or not bus.flush("logged", timeout / 2):
        # It would be run before what the session has just said, or not at all.
        return failed(f"memory cannot be reached now: {bus.problem or 'it is slow to take events'}")
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
            reads_after=written_by(session.scope, session.ref, bus.settings.partitions),
        )
        why = ask_tool(redis, bus.settings, request, timeout)
        return AwaitedReplies(partition, [call_id], [tool.provider], why)

    heard = bus.listener.wait_for_replies(ask, until - bus.clock.monotonic())
    reply = _first(heard, tool)
    if reply is None:
        return failed(heard.problem or f"{tool.provider} gave no answer within {timeout:g} s")
    return _result(reply, tool)


# -- answers --------------------------------------------------------------------------------------


def _first(heard: ReceivedReplies, tool: Tool) -> Reply | None:
    return next(iter(heard.replies.get(tool.provider, ())), None)


def _result(reply: Reply, tool: Tool, **more: Any) -> dict[str, Any]:
    """Return a tool's result as JSON has it; what is no object stands under ``result``."""
    if reply.error:
        return failed(f"{tool.offered}: {reply.error}", **more)
    try:
        result = msgspec.json.decode(reply.text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return failed(f"{tool.offered}: its result is no JSON", **more)
    return result if isinstance(result, dict) else {"result": result}


def _partition(bus: SessionBus, session: PublishingSession) -> int:
    return partition_of(session.key, bus.settings.partitions)


def _roster(bus: SessionBus, redis: Any) -> Any:
    from memorybus.registry.roster import Roster

    return Roster(redis, Keys(bus.settings.namespace))
