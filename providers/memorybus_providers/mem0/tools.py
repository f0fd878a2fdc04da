"""The tools that a model calls; their names are those of Hermes's plugin for Mem0."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from memorybus_providers.remote.provider import RemoteTool, ToolSet


class Mem0Search(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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


class Mem0Add(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``mem0_add``."""

    content: Annotated[
        str,
        Meta(min_length=1, max_length=50_000, pattern=r"\S", description="What to remember."),
    ]


Mem0Call = Mem0Search | Mem0Add

TOOLS: Final[ToolSet[Mem0Call]] = ToolSet(
    {
        "mem0_search": RemoteTool(
            Mem0Search, "Search long-term memory for what is known of this person.", reads=True
        ),
        "mem0_add": RemoteTool(Mem0Add, "Store a fact in long-term memory, word for word."),
    }
)
