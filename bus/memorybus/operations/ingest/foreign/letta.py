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

from memorybus.operations.ingest.foreign.model import (
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
from memorybus.operations.ingest.foreign.reading import parse_json

_ABOUT_PERSON = "human"
_ANSWER = "send_message"
_PACKED = "user_message"


def parse(data: bytes, name: str) -> ParsedExport:
    """Return the conversations and the memory blocks of the agents in a file.

    The block ``human`` belongs to the person; all others are the agent's own notes. System and tool
    messages, heartbeats and alerts are left out.

    Raises:
        ForeignError: the file is no agent file.
    """
    try:
        whole = parse_json(data)
    except ForeignError as error:
        raise ForeignError(error.why, name) from error
    if not isinstance(whole, dict) or not isinstance(whole.get("agents"), list):
        raise ForeignError("an agent file has a list 'agents'", name)
    return parse_records(_records_of(whole, name), _parse_record)


def _records_of(whole: dict[str, Any], name: str) -> Iterator[Record]:
    """Yield blocks and messages, each with its agent's name and the file's time."""
    blocks = {one["id"]: one for one in _objects_of(whole, "blocks", name) if "id" in one}
    for agent in _objects_of(whole, "agents", name):
        common = {"agent": agent.get("name"), "file_time": whole.get("created_at")}
        for known in agent.get("block_ids") or ():
            yield Record(f"{name}: block {known}", blocks.get(known, {}) | common)
        for message in _objects_of(agent, "messages", name):
            yield Record(f"{name}: message {message.get('id')}", message | common)


def _objects_of(whole: dict[str, Any], key: str, name: str) -> list[dict[str, Any]]:
    found = whole.get(key) or []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ForeignError(f"{key!r} must be a list of objects", name)
    return found


def _parse_record(record: Record) -> ParsedRecord:
    return _parse_message(record) if "role" in record.value else _parse_block(record)


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


def _parse_message(record: Record) -> ParsedRecord:
    agent, role = text_of(record, "agent"), text_of(record, "role")
    at, own = time_of(record, "created_at"), f"{agent}:{text_of(record, 'id')}"
    name = text_of(record, "name", default="")
    if role == "user":
        said = _unpack(_content(record))
        return ForeignMessage(
            id=f"{own}:{at}", speaker="user", text=said, session=agent, at=at, name=name
        )
    if role == "assistant":
        said = _answer(record) or _content(record)
        return ForeignMessage(
            id=f"{own}:{at}", speaker="assistant", text=said, session=agent, at=at, agent=agent
        )
    return None


def _content(record: Record) -> str:
    content = record.value.get("content")
    if isinstance(content, list):
        texts = [one.get("text") for one in content if isinstance(one, dict)]
        return "\n".join(text for text in texts if isinstance(text, str))
    return text_of(record, "content", default="")


def _unpack(text: str) -> str:
    """Return the person's text of a packed message; "" for a heartbeat and the like."""
    packed = _json_object(text)
    if packed is None or not isinstance(packed.get("type"), str):
        return text
    said = packed.get("message")
    return said if packed["type"] == _PACKED and isinstance(said, str) else ""


def _answer(record: Record) -> str:
    """Return what the agent said through the tool `send_message`; "" if it did not use it."""
    for call in record.value.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and function.get("name") == _ANSWER:
            said = (_json_object(str(function.get("arguments"))) or {}).get("message")
            return said if isinstance(said, str) else ""
    return ""


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
