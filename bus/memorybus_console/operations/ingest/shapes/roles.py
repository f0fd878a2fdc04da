"""The names that exports have for the roles of messages."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

REASONING = "reasoning"
"""The role of a message that is a model's reasoning alone."""

NOTES: Mapping[str, str] = MappingProxyType(
    {"summary": "summaries", "filehistorysnapshot": "file histories"}
)
"""By the type of a line of Claude Code that holds no turn: what it is."""

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
    """Return a name as the tables have it."""
    plain = name.lower().translate(_SEPARATORS)
    for ending in _ENDINGS:
        plain = plain.removesuffix(ending)
    return plain


_SEPARATORS = str.maketrans("", "", " _-")
