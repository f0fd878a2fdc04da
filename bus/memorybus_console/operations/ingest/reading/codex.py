"""Codex's transcripts (``~/.codex/sessions/…/rollout-….jsonl``): an object a line.

``{"timestamp", "type", "payload"}``: ``session_meta`` has the session's ``id``; a ``response_item``
is a message, a call of a tool or its output; an ``event_msg`` shows the same once more. Before
September 2025 the first line was the session, and the others were the items themselves.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memorybus_console.operations.ingest.reading.contents import without_program_text
from memorybus_console.operations.ingest.reading.json_files import JsonLine
from memorybus_console.operations.ingest.report import LeftOut

_ITEM, _SESSION = "response_item", "session_meta"
_LINES = (_ITEM, _SESSION, "event_msg", "turn_context", "compacted")
_BY_PROGRAM = (
    "<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<INSTRUCTIONS>",
    "<turn_aborted>", "<permissions instructions>", "<skill>", "<user_shell_command>",
    "<subagent_notification>", "<collaboration_mode>", "<apps_instructions>",
)  # fmt: skip
_NOTE = "notes of the program"


def is_line(value: Any) -> bool:
    """Return whether a JSON value is a line that only a transcript has."""
    return isinstance(value, dict) and (
        (value.get("type") in _LINES and isinstance(value.get("payload"), dict))
        or value.get("record_type") == "state"
        or _is_first(value)
    )


def _is_first(value: Mapping[str, Any]) -> bool:
    return {"id", "timestamp", "instructions"} <= value.keys() and "role" not in value


def _session_of(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a line says of the session; nothing if it is another line."""
    payload = value.get("payload")
    if value.get("type") == _SESSION and isinstance(payload, dict):
        return payload
    return value if _is_first(value) else {}


def plain_lines(lines: Iterable[JsonLine], left_out: LeftOut) -> Iterator[JsonLine]:
    """Yield the messages of a transcript, each below the session of the file."""
    lines = [line for line in lines if isinstance(line.value, dict)]
    sessions = (_session_of(line.value) for line in lines)
    first: Mapping[str, Any] = next(filter(None, sessions), {})
    source = first.get("source")
    by_agent = isinstance(source, dict) and "subagent" in source
    for line in lines:
        message = _message_of(line.value, left_out)
        if by_agent:
            left_out.drop("messages of sub-agents", message is not None)
        elif message:
            around = {"session_id": first.get("id"), "created_at": first.get("timestamp")}
            value = {**around, "messages": [message]} if first.get("id") else message
            yield line._replace(value=value)


def _message_of(value: Mapping[str, Any], left_out: LeftOut) -> dict[str, Any] | None:
    """Return a line's message; None if it holds none, which is counted by what it is."""
    payload = value.get("payload")
    item = payload if value.get("type") == _ITEM and isinstance(payload, dict) else value
    kind, role = str(item.get("type")), item.get("role")
    at = {"timestamp": value["timestamp"]} if "timestamp" in value else {}
    if kind.endswith(("_call", "_call_output")):
        return {**item, **at, "role": "tool"}
    spoken = kind == "message" and role in ("user", "assistant")
    by_program = _BY_PROGRAM if role == "user" else ()
    content = without_program_text(item.get("content"), by_program) if spoken else None
    if content:
        return {**item, **at, "content": content}
    left_out.drop({"reasoning": "reasoning", "compacted": "summaries"}.get(kind, _NOTE))
    return None
