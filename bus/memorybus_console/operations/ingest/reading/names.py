"""The names that exports have for roles, ids, times, titles and speakers.

A value that no table knows makes a message without it, never an error: an export comes from a
program that nobody here controls.
"""

from collections.abc import Iterable, Mapping
from datetime import tzinfo
from types import MappingProxyType
from typing import Any

from memorybus.text.times import parse_timestamp

from memorybus_console.operations.ingest.report import LeftOut

REASONING = "reasoning"  # the role of a message that is a model's reasoning alone

ROLE_FIELDS = (
    "role_type", "role", "author", "sender", "from", "speaker", "message_type", "type",
)  # fmt: skip
"""The fields that may name a role; the first one with a known name counts."""

_NAMES = {
    "user": ("user", "human", "person", "customer", "prompter", "me"),
    "assistant": (
        "assistant", "ai", "model", "bot", "gpt", "chatgpt", "claude", "gemini", "agent", "chatbot",
    ),
    "system": ("system", "context"),
    "developer": ("developer",),
    "tool": (
        "tool", "toolcall", "toolresult", "toolreturn", "tooluse", "functioncall",
        "functioncalloutput", "functionresponse", "observation", "ipython",
    ),
    "function": ("function",),
    REASONING: (REASONING, "hiddenreasoning", "thinking", "thought"),
}  # fmt: skip
ROLES: Mapping[str, str] = MappingProxyType(
    {name: role for role, names in _NAMES.items() for name in names}
)
"""The role of each name, which is written without capitals, blanks, ``_`` and ``-``."""

_ENDINGS = ("chunk", "message")
"""The ends of class names such as ``HumanMessage`` and ``AIMessageChunk``."""


def role_of(message: Mapping[str, Any]) -> str | None:
    """Return the role that a message names; None if it names none that is known."""
    values = [message.get(field) for field in ROLE_FIELDS]
    path = message.get("id")
    if isinstance(path, list) and path:
        values.append(path[-1])  # LangChain's path of a class
    return next(filter(None, map(_role_named, values)), None)


def _role_named(value: object) -> str | None:
    name = value.get("role") if isinstance(value, Mapping) else value
    return ROLES.get(plain_name(name)) if isinstance(name, str) else None


def plain_name(name: str) -> str:
    plain = name.lower().translate(_SEPARATORS)
    for ending in _ENDINGS:
        plain = plain.removesuffix(ending)
    return plain


_SEPARATORS = str.maketrans("", "", " _-")


SESSION_FIELDS = ("session_id", "session", "conversation_id", "sessionId", "conversationId",
                  "thread_id", "chat_id")  # fmt: skip
OWN_ID_FIELDS = ("uuid", "id", "message_id", "messageId", "_id")
TITLE_FIELDS = ("title", "name")
NAME_FIELDS = ("name", "user_name", "username", "speaker_name", "sender_name")
TIME_FIELDS = (
    "timestamp", "created_at", "create_time", "createdAt", "createTime", "created", "at", "ts",
    "time", "datetime", "date", "sent_at", "start_time",
)  # fmt: skip
_SECONDS_FIELDS = ("$date", "seconds", "_seconds", "$numberLong")
"""The fields of a time that is an object, as databases write it."""


def first_text(value: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the first of these fields that is a text or a whole number; "" if there is none."""
    return next(filter(None, (id_text(value.get(name)) for name in names)), "")


def id_text(value: object) -> str:
    """Return an id, which may be a number, as a text; "" for anything else."""
    is_id = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value) if is_id and not _is_endless(value) else ""


def _is_endless(value: object) -> bool:
    """Return whether a number has more digits than an id."""
    return isinstance(value, int) and value.bit_length() > _MAX_ID_BITS


_MAX_ID_BITS = 256


def time_in(value: Mapping[str, Any], zone: tzinfo, left_out: LeftOut) -> int | None:
    """Return the first readable time of an object, milliseconds; None if it has none.

    Args:
        zone: the zone of times that name none.
        left_out: gets how many times are none.
    """
    for name in TIME_FIELDS:
        given = value.get(name)
        if given in (None, ""):
            continue
        try:
            return parse_timestamp(plain_time(given), zone)
        except ValueError:
            left_out.drop("unreadable times")
    return None


def plain_time(value: Any) -> Any:
    for _ in range(_MAX_AROUND):
        if not isinstance(value, Mapping):
            break
        value = next((value[name] for name in _SECONDS_FIELDS if name in value), None)
    return value


_MAX_AROUND = 3  # how many objects may be around a time: ``{"$date": {"$numberLong": "…"}}``
