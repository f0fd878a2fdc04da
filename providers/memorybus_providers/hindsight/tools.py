"""The tools as a model is told of them, by the names that Hindsight's own plugins use."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

import msgspec
from memorybus.errors import Permanent
from msgspec import Meta

Query = Annotated[str, Meta(min_length=1, max_length=4_000, pattern=r"\w")]


class Recall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``hindsight_recall``."""

    query: Annotated[Query, Meta(description="A question or some key words.")]


class Reflect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``hindsight_reflect``."""

    query: Annotated[Query, Meta(description="A question that memories together answer.")]


class Retain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``hindsight_retain``."""

    content: Annotated[
        str,
        Meta(min_length=1, max_length=50_000, pattern=r"\S", description="What to remember."),
    ]
    context: Annotated[
        str, Meta(max_length=500, description="In a few words, what it is about.")
    ] = ""


Call = Recall | Reflect | Retain

_CALLS: Final[Mapping[str, type[Call]]] = MappingProxyType(
    {"hindsight_recall": Recall, "hindsight_reflect": Reflect, "hindsight_retain": Retain}
)
_SAID: Final[Mapping[str, str]] = MappingProxyType(
    {
        "hindsight_recall": "Search long-term memory for what is known of this person.",
        "hindsight_reflect": "Have long-term memory thought over, and a question answered from it.",
        "hindsight_retain": "Store something in long-term memory, to be found in later sessions.",
    }
)
READING: Final = frozenset({"hindsight_recall", "hindsight_reflect"})


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
        raise Permanent(f"hindsight has no tool {tool[:100]!r}")
    return msgspec.convert(dict(arguments), _CALLS[tool])


def _parameters(kind: type[Call]) -> dict[str, Any]:
    schema = msgspec.json.schema(kind)
    found: dict[str, Any] = schema["$defs"][kind.__name__]
    return {part: value for part, value in found.items() if part not in {"title", "description"}}
