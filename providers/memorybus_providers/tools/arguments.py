"""Describes the tools and their arguments to a model, and reads its calls."""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, Any, Final

import msgspec
from memorybus.msgspec_types import prepared
from msgspec import Meta

from memorybus_providers.base import argument_schema
from memorybus_providers.ranking import facts

Limit = Annotated[int, Meta(ge=1, le=50, description="How many results at most.")]
Category = Annotated[
    str, Meta(max_length=100, description="Only stored facts of this category; empty for all.")
]
Filed = Annotated[
    str,
    Meta(
        max_length=100,
        description="What sort of fact it is, one word: user_pref, project, tool, general, …",
    ),
]
Tags = Annotated[
    list[Annotated[str, Meta(max_length=100)]],
    Meta(max_length=20, description="Words to find it by."),
]
Trust = Annotated[
    float,
    Meta(ge=0, le=1, description="Only facts trusted so much; one that nobody judged has 0.5."),
]
FactId = Annotated[
    str, Meta(pattern=facts.PATTERN, description="A fact's id, as the other memory tools show it.")
]
Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        pattern=r"\S",
        description="The name of a person, place, project or thing, as it is written in the facts: "
        "in full, or a part of it.",
    ),
]


class Search(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``memory_search``."""

    query: Annotated[
        str, Meta(min_length=1, max_length=4_000, description="A question or some key words.")
    ]
    limit: Limit = 10
    about: Annotated[
        str,
        Meta(max_length=200, description="Only what this person said, or notes that name it."),
    ] = ""
    category: Category = ""
    min_trust: Trust = 0.0
    as_of: Annotated[
        str,
        Meta(
            max_length=40,
            description="What was known then: an ISO date or time, such as 2026-03-01; empty for "
            "now. A date is its first moment, UTC.",
        ),
    ] = ""


class Probe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``memory_probe``."""

    entity: Name
    category: Category = ""
    limit: Limit = 20


class Related(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``memory_related``."""

    entity: Name
    limit: Limit = 10


class ReasonAbout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``memory_reason``."""

    entities: Annotated[
        list[Name], Meta(min_length=2, max_length=5, description="Two to five names.")
    ]
    limit: Limit = 10


class Listing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``memory_list``."""

    category: Category = ""
    min_trust: Trust = 0.0
    limit: Limit = 20


class SessionSearch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``session_search``."""

    query: Annotated[
        str,
        Meta(min_length=1, max_length=4_000, description="What the conversation was about."),
    ]
    limit: Annotated[int, Meta(ge=1, le=20, description="How many conversations at most.")] = 3
    around: Annotated[
        int,
        Meta(ge=0, le=10, description="How many utterances before and after the hit to show."),
    ] = 2


class Add(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``memory_add``."""

    content: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=10_000,
            pattern=r"\S",
            description="One fact, worded so that it can be understood on its own.",
        ),
    ]
    category: Filed = ""
    tags: Tags = msgspec.field(default_factory=list)


class Contradict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``memory_contradict``."""

    statement: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1_000,
            pattern=r"\S",
            description="One plain statement, with whom it is about: 'The user lives in Paris'.",
        ),
    ]
    limit: Limit = 10


class Correct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``memory_correct``."""

    content: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=10_000,
            pattern=r"\S",
            description="What is right, as one fact that can be understood on its own.",
        ),
    ]
    fact_id: Annotated[
        str,
        Meta(
            pattern=r"^([0-9a-f]{14}(-[0-9]{1,9})?)?$",
            description="The id of the fact that is wrong or outdated. Give this or old_text.",
        ),
    ] = ""
    old_text: Annotated[
        str,
        Meta(
            max_length=2_000,
            description="A text that the wrong facts hold word for word, if no id is known.",
        ),
    ] = ""
    category: Filed = ""
    tags: Tags = msgspec.field(default_factory=list)


class Feedback(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``memory_feedback``."""

    fact_id: FactId
    helpful: Annotated[bool, Meta(description="Whether the fact was right and of use.")]


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``memory_pin``."""

    fact_id: FactId
    pinned: Annotated[bool, Meta(description="False to let it age again.")] = True


class ForgetFact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``memory_forget``."""

    fact_id: FactId


Reading = Search | Probe | Related | ReasonAbout | Contradict | Listing | SessionSearch
Writing = Add | Correct | Feedback | Pin | ForgetFact
Arguments = Reading | Writing

ARGUMENTS: Final[Mapping[str, type[Arguments]]] = MappingProxyType(
    {
        "memory_search": Search,
        "memory_probe": Probe,
        "memory_related": Related,
        "memory_reason": ReasonAbout,
        "memory_contradict": Contradict,
        "memory_list": Listing,
        "session_search": SessionSearch,
        "memory_add": Add,
        "memory_correct": Correct,
        "memory_feedback": Feedback,
        "memory_pin": Pin,
        "memory_forget": ForgetFact,
    }
)

READING: Final = frozenset(
    name for name, arguments in ARGUMENTS.items() if arguments not in Writing.__args__
)
"""Names of the tools that only read."""

FORGETTING: Final = frozenset({"memory_forget"})  # names of the tools that take a memory back

_DESCRIPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "memory_search": "Search long-term memory: past conversations, notes and stored facts. "
        "Returns facts, best first, each with its id, speaker, session and date; `until` marks one "
        "that does not hold any more, `before` says what was so earlier. Use it for a question; "
        "for everything about one person or thing use memory_probe.",
        "memory_probe": "Everything remembered that contains one name: stored facts first, then "
        "what was said, newest first. Use it before you answer a question about somebody. What "
        "somebody said, memory_search finds by about.",
        "memory_related": "The names that stand in the same facts as a name, most often first, "
        "each with its newest fact. Use it to find where to look next.",
        "memory_reason": "How several persons or things are connected: facts that name more than "
        "one of them, and names through which they are connected. Use it for questions such as "
        "'what have Ana and the harbour project to do with each other?'",
        "memory_contradict": "What was corrected or replaced among the facts that a statement "
        "speaks of, with what holds instead. Use it before you store a statement that may be "
        "outdated; put right what is wrong with memory_correct.",
        "memory_list": "List stored facts, newest first: what was kept by memory_add or in the "
        "agent's memory files, not what was said. Use it to review them.",
        "session_search": "Find the past conversation in which something was said, or whose "
        "summary has the words. Returns conversations, best first, each with its id, date, summary "
        "and topics if it has any, and the utterances around the hit. Use it for 'when did we talk "
        "about …?' and to read a fact in its context.",
        "memory_add": "Store one fact in long-term memory for later sessions. What is said in the "
        "conversation is remembered anyway: store what should be found by itself.",
        "memory_correct": "Put a remembered fact right: the new statement comes first from now on, "
        "and the old one is marked as outdated, not erased. Use it when the user says that "
        "something is wrong or has changed. Returns what it replaces.",
        "memory_feedback": "Say whether a remembered fact was helpful. Helpful facts rank higher "
        "later, unhelpful or wrong ones lower.",
        "memory_pin": "Keep a stored fact in prompts however long nobody asks for it: others are "
        "archived in time, and then found only by these tools. Use it for what must not be "
        "missed, such as an allergy.",
        "memory_forget": "Delete one remembered fact for good. Use it only when the user asks you "
        "to forget something; put right what is wrong with memory_correct.",
    }
)


def schemas() -> list[dict[str, Any]]:
    """Return the tools as OpenAI function objects: ``name``, ``description``, ``parameters``."""
    return [
        {
            "name": name,
            "description": _DESCRIPTIONS[name],
            "parameters": argument_schema(arguments),
        }
        for name, arguments in ARGUMENTS.items()
    ]


def parse_call(tool: str, arguments: Mapping[str, Any]) -> Arguments | str:
    """Return a call's arguments, or what is wrong with them in a sentence for the model."""
    kind = ARGUMENTS.get(tool)
    if kind is None:
        return f"there is no tool {tool!r}; there are {', '.join(ARGUMENTS)}"
    try:
        call = msgspec.convert(dict(arguments), prepared(kind))
        if isinstance(call, Search):
            parse_time(call.as_of)
    except ValueError as error:  # msgspec's errors are ValueErrors
        return f"{tool}: {error}"
    return call


def parse_time(text: str) -> int | None:
    """Return an ISO date or time as milliseconds, UTC if it names no zone; None if it is empty.

    Raises:
        ValueError: it is no such time.
    """
    if not text.strip():
        return None
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise ValueError(f"as_of: give an ISO date or time, such as 2026-03-01: {error}") from error
    zoned = found if found.tzinfo else found.replace(tzinfo=UTC)
    return round(zoned.timestamp() * 1000)
