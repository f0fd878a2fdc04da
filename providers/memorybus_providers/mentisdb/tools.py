"""The two tools that a model calls, with their arguments and descriptions."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from memorybus_providers.remote.provider import RemoteTool, ToolSet

ThoughtType = Literal[
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


class MentisSearch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
    thought_type: Annotated[ThoughtType, Meta(description="What sort of thought it is.")] = (
        "FactLearned"
    )
    importance: Annotated[float, Meta(ge=0, le=1, description="How much it matters.")] = 0.5
    tags: Annotated[list[Label], Meta(max_length=20, description="Words to find it by.")] = (
        msgspec.field(default_factory=list)
    )
    concepts: Annotated[
        list[Label], Meta(max_length=20, description="What it is about, in general terms.")
    ] = msgspec.field(default_factory=list)


MentisCall = MentisSearch | Append

TOOLS: Final[ToolSet[MentisCall]] = ToolSet(
    {
        "mentisdb_ranked_search": RemoteTool(
            MentisSearch,
            "Search the thoughts of all conversations with this user, best first, each with its "
            "type and date. Use it before you decide or ask anew.",
            reads=True,
        ),
        "mentisdb_append": RemoteTool(
            Append,
            "Keep one thought for later sessions: a decision, a lesson, a constraint, a fact. What "
            "is said in the conversation is remembered anyway.",
        ),
    }
)
