"""The tools that a model calls, with their arguments and descriptions."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from memorybus_providers.remote.provider import RemoteTool, ToolSet

Peer = Annotated[
    Literal["user", "ai"], Meta(description="Whom it is about: the user, or you, the agent.")
]
HonchoQuestion = Annotated[
    str, Meta(min_length=1, max_length=4_000, pattern=r"\S", description="What to look for.")
]


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``honcho_profile``."""

    peer: Peer = "user"


class HonchoSearch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``honcho_search``."""

    query: HonchoQuestion
    limit: Annotated[int, Meta(ge=1, le=50, description="How many results at most.")] = 10


class Context(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``honcho_context``."""

    query: Annotated[
        str, Meta(max_length=4_000, description="What it should be about; empty for all.")
    ] = ""
    peer: Peer = "user"


class Reasoning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``honcho_reasoning``."""

    query: HonchoQuestion
    reasoning_level: Annotated[
        Literal["minimal", "low", "medium", "high", "max"],
        Meta(description="How hard to think: more takes longer and costs more."),
    ] = "low"
    peer: Peer = "user"


class Conclude(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``honcho_conclude``."""

    conclusion: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=10_000,
            pattern=r"\S",
            description="One fact, worded so that it can be understood on its own.",
        ),
    ]
    peer: Peer = "user"
    remove: Annotated[
        bool, Meta(description="Remove the one that holds this text, instead of keeping it.")
    ] = False


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``honcho_card``."""

    facts: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=500)]],
        Meta(max_length=40, description="All that the card shall say, one short fact each."),
    ]
    peer: Peer = "user"


HonchoCall = Profile | HonchoSearch | Context | Reasoning | Conclude | Card

TOOLS: Final[ToolSet[HonchoCall]] = ToolSet(
    {
        "honcho_profile": RemoteTool(
            Profile,
            "The card of the user (or of you): the key facts that Honcho keeps. "
            "Quick. Use it to see whom you are talking to.",
            reads=True,
        ),
        "honcho_search": RemoteTool(
            HonchoSearch,
            "Search what was said in all conversations with this user. Returns "
            "messages word for word, each with who said it and when.",
            reads=True,
        ),
        "honcho_context": RemoteTool(
            Context,
            "What Honcho holds of the user (or of you): the card and conclusions "
            "from all conversations, those near a query first. Quick, no model is asked.",
            reads=True,
        ),
        "honcho_reasoning": RemoteTool(
            Reasoning,
            "Put a question about the user (or you) to Honcho's own model, which thinks about all "
            "that was said. Slow and costly: use it when a search does not answer.",
            reads=True,
        ),
        "honcho_conclude": RemoteTool(
            Conclude,
            "Keep one fact of the user (or of you) for later sessions, or remove "
            "one. What is said in the conversation is remembered anyway.",
        ),
        "honcho_card": RemoteTool(
            Card,
            "Replace the card of the user (or of you) by these facts. Read it with "
            "honcho_profile first: what is left out goes.",
        ),
    }
)
