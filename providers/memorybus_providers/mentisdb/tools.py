"""The two tools that a model calls: what they take."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from memorybus_providers.remote import tool_calls

Kind = Literal[
    "PreferenceUpdate",
    "UserTrait",
    "RelationshipUpdate",
    "Finding",
    "Insight",
    "FactLearned",
    "PatternDetected",
    "Hypothesis",
    "Mistake",
    "Correction",
    "LessonLearned",
    "AssumptionInvalidated",
    "Constraint",
    "Plan",
    "Subgoal",
    "Goal",
    "Decision",
    "StrategyShift",
    "Question",
    "Idea",
    "Experiment",
    "ActionTaken",
    "TaskComplete",
    "Summary",
]
"""Types of thoughts that MentisDB knows."""

Label = Annotated[str, Meta(min_length=1, max_length=100)]


class Search(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``mentisdb_ranked_search``."""

    text: Annotated[
        str, Meta(min_length=1, max_length=4_000, pattern=r"\S", description="What to look for.")
    ]
    limit: Annotated[int, Meta(ge=1, le=50, description="How many thoughts at most.")] = 10


class Append(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``mentisdb_append``."""

    content: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=10_000,
            pattern=r"\S",
            description="One thought, worded so that it can be understood on its own.",
        ),
    ]
    thought_type: Annotated[Kind, Meta(description="What sort of thought it is.")] = "FactLearned"
    importance: Annotated[float, Meta(ge=0, le=1, description="How much it matters.")] = 0.5
    tags: Annotated[list[Label], Meta(max_length=20, description="Words to find it by.")] = (
        msgspec.field(default_factory=list)
    )
    concepts: Annotated[
        list[Label], Meta(max_length=20, description="What it is about, in general terms.")
    ] = msgspec.field(default_factory=list)


Call = Search | Append

ARGUMENTS: Final[Mapping[str, type[Call]]] = MappingProxyType(
    {"mentisdb_ranked_search": Search, "mentisdb_append": Append}
)

READING: Final = frozenset({"mentisdb_ranked_search"})
"""Names of the tools that only read."""

_DESCRIPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "mentisdb_ranked_search": "Search the thoughts of all conversations with this user, best "
        "first, each with its type and date. Use it before you decide or ask anew.",
        "mentisdb_append": "Keep one thought for later sessions: a decision, a lesson, a "
        "constraint, a fact. What is said in the conversation is remembered anyway.",
    }
)


def schemas() -> list[dict[str, Any]]:
    """Return the tools as a model is told of them."""
    return tool_calls.schemas(ARGUMENTS, _DESCRIPTIONS)


def parsed(tool: str, arguments: Mapping[str, Any]) -> Call | str:
    """Return a call's arguments, or what is wrong with them in a sentence for the model."""
    return tool_calls.parsed(ARGUMENTS, tool, arguments)
