"""What is said in a message: its words, and its content without reasoning and without data.

A content is a text, a part or a list of parts, each in the form of one of many programs. Reasoning
is never kept, whether it is a part, a field of its own or in ``<think>`` at a text's beginning.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from memorybus.text.bounding import plain_value

from memorybus_console.operations.ingest.reading.names import plain_name
from memorybus_console.operations.ingest.report import LeftOut

TEXT_FIELDS = ("content", "parts", "text", "value", "message", "body")
"""The fields of a message that may have its content; the first one with words counts."""

REASONING_FIELDS = frozenset((
    "reasoning", "reasoning_content", "reasoning_details", "reasoning_text", "thinking",
    "thinking_blocks", "thought", "thoughts", "redacted_thinking",
))  # fmt: skip
"""The fields of a message or of a part that have reasoning."""

_DATA_FIELDS = frozenset(("images", "image", "image_url", "audio", "video", "files", "input_audio"))
"""The fields of a message that may have the data of pictures and the like."""

_WORD_FIELDS = ("text", "value", "content", "parts", "transcript")
"""The fields of a part that may have its words."""

DATA = "data of pictures and files"
_TYPE_FIELDS = ("type", "content_type")
_REASONING_TYPES = frozenset((
    "thinking", "redactedthinking", "reasoning", "redactedreasoning", "omittedreasoning",
    "reasoningtext", "reasoningcontent", "reasoningrecap", "summarytext", "thought", "thoughts",
    "think",
))  # fmt: skip
_TOOL_TYPES = frozenset((
    "tooluse", "servertooluse", "mcptooluse", "mcptoolresult", "websearchtoolresult",
    "webfetchtoolresult", "codeexecutiontoolresult", "toolcall", "toolcalls", "toolresult",
    "toolreturn", "toolresponse", "functioncall", "functioncalloutput", "functionresponse",
    "executablecode", "codeexecutionresult", "executionoutput",
))  # fmt: skip
_TOOL_FIELDS = ("functionCall", "functionResponse", "function_call", "function_response",
                "executableCode", "codeExecutionResult", "toolUse", "toolResult")  # fmt: skip
_MARKS = ("thought", "isThought", "is_thought")
"""Fields that are true in a part of Gemini's which is reasoning."""

_THINK = ("<think>", "<thinking>")
_TAG = re.compile("<([^>]*)>")
_MAX_DEPTH = 8  # how deep parts may lie within each other; what lies deeper has no words (G10)

_MAX_DATA_CHARS = 256  # the longest text in a part without words, such as a picture (G10)


class MessageContent(NamedTuple):
    """The content of a message.

    Attributes:
        kept: the content as the turn's messages keep it: a text, or a list of parts if not all of
            them are words; None if the message has none.
    """

    text: str
    kept: Any
    by_tool: bool  # whether it has a call or a result of a tool
    decides: bool  # whether it is the message's content, even if another field has words


def content_of(message: Mapping[str, Any], role: str, left_out: LeftOut) -> MessageContent:
    """Return the content of a message.

    Args:
        role: its role; a person's text is not searched for reasoning.
        left_out: gets how many parts are reasoning, and how many have data that is shortened.
    """
    left_out.drop("reasoning", sum(1 for field in REASONING_FIELDS if message.get(field)))
    empty = _NO_CONTENT
    for field in TEXT_FIELDS:
        if message.get(field) not in _EMPTY:
            content = _read(message[field], role, left_out)
            if content.decides:
                return content
            empty = content if empty is _NO_CONTENT else empty
    return empty


_EMPTY: tuple[object, ...] = (None, "", [])
_NO_CONTENT = MessageContent("", None, by_tool=False, decides=False)


def other_fields(message: Mapping[str, Any], left_out: LeftOut) -> dict[str, Any]:
    """Return a message's fields other than its content, without reasoning and without data."""
    kept = {
        name: plain_value(value, _MAX_DATA_CHARS)
        if name in _DATA_FIELDS
        else _without_reasoning(value)
        for name, value in message.items()
        if name not in REASONING_FIELDS and name != "content"
    }
    data = sum(kept[name] != message[name] for name in _DATA_FIELDS.intersection(kept))
    left_out.drop(DATA, data)
    return kept


def _without_reasoning(value: Any) -> Any:
    if not isinstance(value, dict) or REASONING_FIELDS.isdisjoint(value):
        return value
    return {name: inner for name, inner in value.items() if name not in REASONING_FIELDS}


def _read(value: Any, role: str, left_out: LeftOut) -> MessageContent:
    if isinstance(value, str):
        text = _without_thoughts(value, role)
        left_out.drop("reasoning", text != value)
        return MessageContent(text, text, by_tool=False, decides=True)
    parts = value if isinstance(value, list) else [value]
    spoken = [part for part in parts if not _is_reasoning(part)]
    kept = [_kept_part(part, role) for part in spoken]
    words = [_words(part) for part in kept]
    changed = [old for old, new in zip(spoken, kept, strict=True) if old != new]
    with_data = sum(1 for part in changed if not _words(part))
    left_out.drop(DATA, with_data)
    left_out.drop("reasoning", len(parts) - len(spoken) + len(changed) - with_data)
    text, by_tool = "\n".join(filter(None, words)), any(map(_is_by_tool, spoken))
    return MessageContent(
        text,
        kept if kept and not all(words) else text,
        by_tool=by_tool,
        decides=bool(text) or by_tool or len(spoken) < len(parts),
    )


def _kept_part(part: Any, role: str) -> Any:
    """Return a part without a model's reasoning and without the data of a picture."""
    words = _words(part)
    if isinstance(part, dict) and not words and not _is_by_tool(part):
        return plain_value(part, _MAX_DATA_CHARS)
    spoken = _without_thoughts(words, role)
    if spoken == words:
        return part
    return spoken if isinstance(part, str) else {"type": "text", "text": spoken}


def _words(part: Any, depth: int = _MAX_DEPTH) -> str:
    """Return the words of a part; "" for pictures, reasoning, tools and the like."""
    if isinstance(part, str):
        return part
    if isinstance(part, int | float) and not isinstance(part, bool):
        return str(part)
    if not depth or _is_reasoning(part) or _is_by_tool(part):
        return ""
    if isinstance(part, list):
        return "\n".join(filter(None, (_words(inner, depth - 1) for inner in part)))
    if not isinstance(part, dict):
        return ""
    inner = (_words(part[field], depth - 1) for field in _WORD_FIELDS if field in part)
    return next(filter(None, inner), "")


def _is_reasoning(part: Any) -> bool:
    return isinstance(part, dict) and (
        any(part.get(mark) is True for mark in _MARKS)
        or not _REASONING_TYPES.isdisjoint(_types(part))
    )


def _is_by_tool(part: Any) -> bool:
    return isinstance(part, dict) and (
        any(field in part for field in _TOOL_FIELDS) or not _TOOL_TYPES.isdisjoint(_types(part))
    )


def _types(part: Mapping[str, Any]) -> set[str]:
    names = (part.get(field) for field in _TYPE_FIELDS)
    return {plain_name(name) for name in names if isinstance(name, str)}


def _without_thoughts(text: str, role: str) -> str:
    """Return a model's text without the reasoning that it begins with.

    Some programs keep only the end mark of it.
    """
    if role == "user" or "think" not in text:
        return text
    for mark in _THINK:
        end = mark.replace("<", "</")
        before, _, after = text.partition(end)
        begins = before.lstrip().startswith(mark)
        if begins or (end in text and mark not in before):
            return after.lstrip()
    return text


def without_program_text(content: Any, beginnings: tuple[str, ...]) -> Any:
    """Return a person's content without the texts that a program put before or beside it.

    Args:
        beginnings: how such texts begin; one that is a tag ends with its end mark.
    """
    if isinstance(content, str):
        return _without_beginnings(content, beginnings)
    if not isinstance(content, list):
        return content
    texts = [part.get("text") if isinstance(part, dict) else part for part in content]
    kept = [_without_beginnings(t, beginnings) if isinstance(t, str) else t for t in texts]
    return [
        {**part, "text": text} if isinstance(part, dict) and "text" in part else part
        for part, text in zip(content, kept, strict=True)
        if text != ""
    ]


def _without_beginnings(text: str, beginnings: tuple[str, ...]) -> str:
    rest = text.lstrip()
    if not rest.startswith(beginnings):
        return text
    while rest.startswith(beginnings):
        tag = _TAG.match(rest)
        rest = rest.partition(f"</{tag[1]}>")[2].lstrip() if tag else ""
    return rest
