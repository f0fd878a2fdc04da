"""Letta: an agent file (``.af``).

Read in letta 0.16.8, the last server (``letta/schemas/agent_file.py``): ``{"agents": [{"name",
"block_ids", "messages": [{"id", "role", "content", "tool_calls", "name", "created_at"}]}],
"blocks": [{"id", "label", "value"}], "created_at"}``. A person's message may be packed as JSON
(``letta/system.py``, ``package_user_message``), and an answer may be the argument of the tool
``send_message``. Ids are unique only within a file (``message-0``). Passages of archival
memory are not in the file.
"""

import json
from collections.abc import Iterator
from typing import Any

from memorybus_console.operations.ingest.foreign.records import (
    Export,
    ForeignError,
    ForeignMemory,
    ForeignMessage,
    ParsedExport,
    ParsedRecord,
    Record,
    parse_records,
    text_of,
    time_of,
)
from memorybus_console.operations.ingest.reading.contents import content_of
from memorybus_console.operations.ingest.reading.names import REASONING, id_text, role_of
from memorybus_console.operations.ingest.report import LeftOut, RefusedInput

_ABOUT_PERSON = "human"
_ANSWER = "send_message"
_PACKED = "user_message"
_NAMELESS = "agent"
_SPEAKS_BESIDE_TOOLS = ("letta_v1_agent",)
"""The types of agents whose content is said, even beside a call of a tool."""


def parse(export: Export) -> ParsedExport:
    """Return the conversations and the memory blocks of the agents in a file.

    The block ``human`` belongs to the person; all others are the agent's own notes. System and tool
    messages, heartbeats and alerts are left out. What an agent writes beside a call of a tool is
    its inner monologue: what it said are its calls of ``send_message``.

    Raises:
        ForeignError: the file is no agent file.
    """
    left_out = LeftOut()
    whole = export.parse_json(left_out).lines[0].value
    if not isinstance(whole, dict) or not isinstance(whole.get("agents"), list):
        raise ForeignError("an agent file has a list 'agents'", export.name)
    records = _records_of(whole, export, left_out)
    return parse_records(records, lambda record: _parse_record(record, left_out), left_out)


def _records_of(whole: dict[str, Any], export: Export, left_out: LeftOut) -> Iterator[Record]:
    """Yield blocks and messages, each with its agent's name and the file's time."""
    blocks = {
        id_text(block.get("id")): block for block in _objects_of(whole, "blocks", export, left_out)
    }
    for agent in _objects_of(whole, "agents", export, left_out):
        common = {
            "agent": id_text(agent.get("name")) or _NAMELESS,
            "agent_type": agent.get("agent_type"),
            "file_time": whole.get("created_at"),
        }
        for block_id in map(id_text, _list_of(agent, "block_ids")):
            where = f"{export.name}: block {block_id}"
            yield Record(where, blocks.get(block_id, {}) | common, export.zone)
        for message in _objects_of(agent, "messages", export, left_out):
            where = f"{export.name}: message {id_text(message.get('id'))}"
            yield Record(where, message | common, export.zone)


def _objects_of(
    whole: dict[str, Any], key: str, export: Export, left_out: LeftOut
) -> Iterator[dict[str, Any]]:
    for index, item in enumerate(_list_of(whole, key)):
        if isinstance(item, dict):
            yield item
        else:
            where = f"{export.name}: {key}[{index}]"
            left_out.refuse(RefusedInput(where, f"{where}: expected an object"))


def _list_of(value: dict[str, Any], key: str) -> list[Any]:
    held = value.get(key)
    return held if isinstance(held, list) else []


def _parse_record(record: Record, left_out: LeftOut) -> ParsedRecord:
    return _parse_message(record, left_out) if "role" in record.value else _parse_block(record)


def _parse_block(record: Record) -> ForeignMemory:
    agent, label = text_of(record, "agent"), text_of(record, "label")
    return ForeignMemory(
        id=f"{agent}:{label}",
        text=text_of(record, "value"),
        at=time_of(record, "file_time"),
        agent=agent,
        store="user" if label == _ABOUT_PERSON else "memory",
        kind=label,
    )


def _parse_message(record: Record, left_out: LeftOut) -> ParsedRecord:
    agent, role = text_of(record, "agent"), role_of(record.value)
    at, own = time_of(record, "created_at"), f"{agent}:{text_of(record, 'id')}"
    if role == "user":
        return ForeignMessage(
            id=f"{own}:{at}",
            speaker="user",
            text=_unpack(content_of(record.value, role, left_out).text),
            session=agent,
            at=at,
            name=text_of(record, "name", default=""),
        )
    if role == "assistant":
        return ForeignMessage(
            id=f"{own}:{at}",
            speaker="assistant",
            text=_said(record, left_out),
            session=agent,
            at=at,
            agent=agent,
        )
    return None


def _said(record: Record, left_out: LeftOut) -> str:
    content = content_of(record.value, "assistant", left_out).text
    calls = [call for call in _list_of(record.value, "tool_calls") if isinstance(call, dict)]
    thinks_aloud = bool(calls) and record.value.get("agent_type") not in _SPEAKS_BESIDE_TOOLS
    left_out.drop(REASONING, thinks_aloud and bool(content))
    answers = [*([] if thinks_aloud else [content]), *map(_answer, calls)]
    return "\n\n".join(filter(None, answers))


def _unpack(text: str) -> str:
    """Return the person's text of a packed message; "" for a heartbeat and the like."""
    packed = _json_object(text)
    if packed is None or not isinstance(packed.get("type"), str):
        return text
    message = packed.get("message")
    return message if packed["type"] == _PACKED and isinstance(message, str) else ""


def _answer(call: dict[str, Any]) -> str:
    """Return what an agent said through a call of `send_message`; "" for another tool."""
    function = call.get("function")
    if not isinstance(function, dict) or function.get("name") != _ANSWER:
        return ""
    arguments = function.get("arguments")
    given = arguments if isinstance(arguments, dict) else _json_object(str(arguments))
    message = (given or {}).get("message")
    return message if isinstance(message, str) else ""


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
