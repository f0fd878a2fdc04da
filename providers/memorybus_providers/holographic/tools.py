"""The tools a model may call: search, add, feedback. Bad arguments are answered, not raised."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.holographic import facts
from memorybus_providers.holographic.entries import NOTE, KeptFacts, Note
from memorybus_providers.holographic.judgements import Judgements
from memorybus_providers.holographic.ranking import LAST_MS, Scored
from memorybus_providers.holographic.recall import FactSearch

RESULTS_KEPT = 10_000
"""Results of writing tools remembered, so that a call that comes again changes nothing (G10)."""


class Search(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``memory_search``."""

    query: Annotated[
        str, Meta(min_length=1, max_length=4_000, description="A question or some key words.")
    ]
    limit: Annotated[int, Meta(ge=1, le=50, description="How many facts at most.")] = 10
    about: Annotated[
        str,
        Meta(max_length=200, description="Only what this person said, or notes that name it."),
    ] = ""


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
    category: Annotated[str, Meta(max_length=100, description="What sort of fact it is.")] = ""
    tags: Annotated[
        list[Annotated[str, Meta(max_length=100)]],
        Meta(max_length=20, description="Words to find it by."),
    ] = msgspec.field(default_factory=list)


class Feedback(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``memory_feedback``."""

    fact_id: Annotated[
        str, Meta(pattern=facts.PATTERN, description="The fact's id, as memory_search shows it.")
    ]
    helpful: Annotated[bool, Meta(description="Whether the fact was right and of use.")]


Arguments = Search | Add | Feedback
ARGUMENTS: Final[Mapping[str, type[Arguments]]] = MappingProxyType(
    {
        "memory_search": Search,
        "memory_add": Add,
        "memory_feedback": Feedback,
    }
)

_DESCRIPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "memory_search": "Search long-term memory: past conversations, notes and stored facts. "
        "Returns facts, best first, each with its id, speaker, session and date.",
        "memory_add": "Store one fact in long-term memory for later sessions.",
        "memory_feedback": "Say whether a remembered fact was helpful. Helpful facts rank higher "
        "later, unhelpful or wrong ones lower.",
    }
)


def schemas() -> list[dict[str, Any]]:
    """Return the tools as OpenAI function objects: ``name``, ``description``, ``parameters``."""
    return [
        {
            "name": name,
            "description": _DESCRIPTIONS[name],
            "parameters": _parameters(arguments),
        }
        for name, arguments in ARGUMENTS.items()
    ]


def parsed(tool: str, arguments: Mapping[str, Any]) -> Arguments | str:
    """Return a call's arguments, or what is wrong with them in a sentence for the model."""
    kind = ARGUMENTS.get(tool)
    if kind is None:
        return f"there is no tool {tool!r}; there are {', '.join(ARGUMENTS)}"
    try:
        return msgspec.convert(dict(arguments), kind)
    except msgspec.ValidationError as error:
        return f"{tool}: {error}"


def shown(found: Sequence[Scored]) -> dict[str, Any]:
    """Return the result of a search."""
    return {"ok": True, "results": [_shown(scored) for scored in found]}


def failed(why: str) -> dict[str, Any]:
    """Return the result of a call that did nothing."""
    return {"ok": False, "error": why}


class FactTools:
    """Runs the tools; `add` and `feedback` inside the transaction their caller has open."""

    def __init__(
        self, db: sqlite3.Connection, recall: FactSearch, kept: KeptFacts, judgements: Judgements
    ) -> None:
        """Work on the provider's own parts."""
        self._db = db
        self._recall = recall
        self._kept = kept
        self._judgements = judgements

    def search(self, call: Search, ctx: HookContext) -> list[Scored]:
        """Return the best facts of the caller's scope."""
        return self._recall.answer(call.query, RecallScope.own(ctx.scope), call.about)[: call.limit]

    def count_retrieved(self, found: Sequence[Scored]) -> None:
        """Count one retrieval of each fact that was found."""
        ids = json.dumps([scored.fact.id for scored in found])
        self._db.execute(
            "update facts set retrieval_count = retrieval_count + 1 "
            "where id in (select value from json_each(?))",
            (ids,),
        )

    def write(self, call: Add | Feedback, ctx: HookContext) -> dict[str, Any]:
        """Run a writing tool once per event id; a call that comes again gets its first result."""
        event_id = bytes.fromhex(ctx.event_id)
        before = self._db.execute(
            "select result from tool_results where event_id = ?", (event_id,)
        ).fetchone()
        if before is not None:
            return dict(json.loads(before[0]))
        result = self._add(call, ctx) if isinstance(call, Add) else self._judge(call, ctx)
        seq = self._db.execute(
            "insert into tool_results(event_id, result) values (?, ?) returning seq",
            (event_id, json.dumps(result)),
        ).fetchone()[0]
        self._db.execute("delete from tool_results where seq <= ?", (seq - RESULTS_KEPT,))
        return result

    def _add(self, call: Add, ctx: HookContext) -> dict[str, Any]:
        note = Note(NOTE, call.content, call.category, " ".join(call.tags))
        return {"ok": True, "id": self._kept.add(note, ctx)}

    def _judge(self, call: Feedback, ctx: HookContext) -> dict[str, Any]:
        trust = self._judgements.add(call.fact_id, ctx, helpful=call.helpful)
        if trust is None:
            return failed(f"no fact {call.fact_id}: give the id that memory_search shows")
        return {"ok": True, "id": call.fact_id, "trust": trust}


def _parameters(arguments: type[Arguments]) -> dict[str, Any]:
    """Return the JSON schema of a call's arguments, without what only documents the code."""
    (schema,), definitions = msgspec.json.schema_components([arguments])
    body = dict(definitions[str(schema["$ref"]).rsplit("/", 1)[-1]])
    return {name: value for name, value in body.items() if name not in {"title", "description"}}


def _shown(scored: Scored) -> dict[str, Any]:
    fact = scored.fact
    said = datetime.fromtimestamp(min(max(fact.at, 0), LAST_MS) / 1000, UTC)
    return {
        "id": fact.name,
        "text": fact.content,
        "kind": fact.kind,
        "speaker": fact.speaker,
        "session": fact.session,
        "at": said.isoformat(timespec="seconds"),
        "trust": fact.trust,
        "category": fact.category,
        "tags": fact.tags.split(),
    }
