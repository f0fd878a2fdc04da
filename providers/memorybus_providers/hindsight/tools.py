"""The tools that a model calls; their names are those of Hindsight's own plugins."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from memorybus_providers.remote.provider import RemoteTool, ToolSet

HindsightQuery = Annotated[str, Meta(min_length=1, max_length=4_000, pattern=r"\w")]


class Recall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``hindsight_recall``."""

    query: Annotated[HindsightQuery, Meta(description="A question or some key words.")]


class Reflect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``hindsight_reflect``."""

    query: Annotated[HindsightQuery, Meta(description="A question that memories together answer.")]


class Retain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``hindsight_retain``."""

    content: Annotated[
        str,
        Meta(min_length=1, max_length=50_000, pattern=r"\S", description="What to remember."),
    ]
    context: Annotated[
        str, Meta(max_length=500, description="In a few words, what it is about.")
    ] = ""


HindsightCall = Recall | Reflect | Retain

TOOLS: Final[ToolSet[HindsightCall]] = ToolSet(
    {
        "hindsight_recall": RemoteTool(
            Recall, "Search long-term memory for what is known of this person.", reads=True
        ),
        "hindsight_reflect": RemoteTool(
            Reflect,
            "Have long-term memory thought over, and a question answered from it.",
            reads=True,
        ),
        "hindsight_retain": RemoteTool(
            Retain, "Store something in long-term memory, to be found in later sessions."
        ),
    }
)
