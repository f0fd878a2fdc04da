"""The tools as a model is told of them, by the names that Hermes's plugin of Mem0 uses."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

import msgspec
from memorybus.errors import Permanent
from msgspec import Meta


class Search(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``mem0_search``."""

    query: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=4_000,
            pattern=r"\S",
            description="A question or some key words.",
        ),
    ]
    top_k: Annotated[int, Meta(ge=1, le=50, description="How many results at most.")] = 10


class Add(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``mem0_add``."""

    content: Annotated[
        str,
        Meta(min_length=1, max_length=50_000, pattern=r"\S", description="What to remember."),
    ]


Call = Search | Add

_CALLS: Final[Mapping[str, type[Call]]] = MappingProxyType({"mem0_search": Search, "mem0_add": Add})
_SAID: Final[Mapping[str, str]] = MappingProxyType(
    {
        "mem0_search": "Search long-term memory for what is known of this person.",
        "mem0_add": "Store a fact in long-term memory, word for word.",
    }
)
READING: Final = frozenset({"mem0_search"})


def schemas() -> list[Mapping[str, Any]]:
    """Return the tools as OpenAI function schemas."""
    return [
        {"name": name, "description": _SAID[name], "parameters": _parameters(kind)}
        for name, kind in _CALLS.items()
    ]


def read(tool: str, arguments: Mapping[str, Any]) -> Call:
    """Return a call's arguments.

    Raises:
        Permanent: there is no such tool.
        msgspec.ValidationError: the arguments do not fit it.
    """
    if tool not in _CALLS:
        raise Permanent(f"mem0 has no tool {tool[:100]!r}")
    return msgspec.convert(dict(arguments), _CALLS[tool])


def _parameters(kind: type[Call]) -> dict[str, Any]:
    schema = msgspec.json.schema(kind)
    found: dict[str, Any] = schema["$defs"][kind.__name__]
    return {part: value for part, value in found.items() if part not in {"title", "description"}}
