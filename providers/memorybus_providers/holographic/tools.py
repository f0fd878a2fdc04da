"""Running the tools a model may call (see `tool_arguments`), and what it is shown."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.holographic.connections import Connections
from memorybus_providers.holographic.entities import Entities, Entity
from memorybus_providers.holographic.entries import NOTE, KeptFacts, Note
from memorybus_providers.holographic.judgements import Judgements
from memorybus_providers.holographic.lookup import FactLookup
from memorybus_providers.holographic.ranking import LAST_MS, Fact
from memorybus_providers.holographic.recall import FactSearch
from memorybus_providers.holographic.tool_arguments import (
    Add,
    Feedback,
    Listing,
    Probe,
    Reading,
    Reason,
    Related,
    Search,
    SessionSearch,
    Writing,
)

RESULTS_KEPT = 10_000
"""Results of writing tools remembered, so that a call that comes again changes nothing (G10)."""

Result = dict[str, Any]


def failed(why: str) -> Result:
    """Return the result of a call that did nothing."""
    return {"ok": False, "error": why}


class ReadingTools:
    """Answers the tools that only read, within the caller's scope."""

    def __init__(self, db: sqlite3.Connection, recall: FactSearch) -> None:
        """Read through `db`, and search by `recall`."""
        self._recall = recall
        self._lookup = FactLookup(db)
        self._connections = Connections(self._lookup, Entities(self._lookup))

    def answer(self, call: Reading, ctx: HookContext) -> tuple[Result, Sequence[Fact]]:
        """Return the result of a call, and the facts that were looked for and found."""
        whose = RecallScope.own(ctx.scope)
        match call:
            case Search():
                return _listed(self._search(call, whose))
            case Probe():
                entity, found = self._connections.probe(call.entity, whose)
                return _listed(_filed(found, call.category)[: call.limit], entity)
            case Related():
                return self._related(call, whose), ()
            case Reason():
                return self._reason(call, whose), ()
            case Listing():
                kept = self._lookup.kept(call.category, whose)
                return _listed(_trusted(kept, call.min_trust)[: call.limit])
            case SessionSearch():
                return self._sessions(call, whose), ()

    def _search(self, call: Search, whose: RecallScope) -> list[Fact]:
        found = [one.fact for one in self._recall.answer(call.query, whose, call.about)]
        return _trusted(_filed(found, call.category), call.min_trust)[: call.limit]

    def _related(self, call: Related, whose: RecallScope) -> Result:
        entity, companions = self._connections.related(call.entity, whose)
        related = [
            {"name": one.name, "facts": len(one.facts), "newest": _shown(one.facts[0])}
            for one in companions[: call.limit]
        ]
        return {"ok": True, "entity": _entity(entity), "related": related}

    def _reason(self, call: Reason, whose: RecallScope) -> Result:
        entities, joint, bridges = self._connections.reason(call.entities, whose)
        return {
            "ok": True,
            "entities": [_entity(entity) for entity in entities],
            "results": [_shown(fact) for fact in joint[: call.limit]],
            "through": [
                {"name": one.name, "facts": [_shown(fact) for fact in one.facts]}
                for one in bridges[: call.limit]
            ],
        }

    def _sessions(self, call: SessionSearch, whose: RecallScope) -> Result:
        hits: dict[int, Fact] = {}
        for one in self._recall.answer(call.query, whose):
            if one.fact.place is not None:
                hits.setdefault(one.fact.place[0], one.fact)
        best = list(hits.values())[: call.limit]
        sessions = [self._session(fact, call.around, whose) for fact in best]
        return {"ok": True, "sessions": sessions}

    def _session(self, hit: Fact, reach: int, whose: RecallScope) -> Result:
        said = [
            {"speaker": one.speaker, "text": one.content, "at": _iso(one.at), "hit": one == hit}
            for one in self._lookup.around(hit, reach, whose)
        ]
        return {"session": hit.session, "at": _iso(hit.at), "id": hit.name, "said": said}


class WritingTools:
    """Runs the tools that write, inside the transaction their caller has open."""

    def __init__(self, db: sqlite3.Connection, kept: KeptFacts, judgements: Judgements) -> None:
        """Work on the provider's own parts."""
        self._db = db
        self._kept = kept
        self._judgements = judgements

    def count_retrieved(self, found: Iterable[Fact]) -> None:
        """Count one retrieval of each fact that was found."""
        ids = json.dumps([fact.id for fact in found])
        self._db.execute(
            "update facts set retrieval_count = retrieval_count + 1 "
            "where id in (select value from json_each(?))",
            (ids,),
        )

    def write(self, call: Writing, ctx: HookContext) -> Result:
        """Run a tool once per event id; a call that comes again gets its first result."""
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

    def _add(self, call: Add, ctx: HookContext) -> Result:
        note = Note(NOTE, call.content, call.category, " ".join(call.tags))
        return {"ok": True, "id": self._kept.add(note, ctx)}

    def _judge(self, call: Feedback, ctx: HookContext) -> Result:
        trust = self._judgements.add(call.fact_id, ctx, helpful=call.helpful)
        if trust is None:
            return failed(f"no fact {call.fact_id}: give the id that memory_search shows")
        return {"ok": True, "id": call.fact_id, "trust": trust}


def _listed(found: Sequence[Fact], entity: Entity | None = None) -> tuple[Result, Sequence[Fact]]:
    about = {} if entity is None else {"entity": _entity(entity)}
    return {"ok": True, **about, "results": [_shown(fact) for fact in found]}, found


def _filed(found: Iterable[Fact], category: str) -> list[Fact]:
    return [fact for fact in found if not category or fact.category == category]


def _trusted(found: Iterable[Fact], least: float) -> list[Fact]:
    return [fact for fact in found if fact.trust >= least]


def _entity(entity: Entity) -> Result:
    aliases, roles = list(entity.aliases), list(entity.roles)
    return {"name": entity.name, "kind": entity.kind, "aliases": aliases, "roles": roles}


def _shown(fact: Fact) -> Result:
    return {
        "id": fact.name,
        "text": fact.content,
        "kind": fact.kind,
        "speaker": fact.speaker,
        "session": fact.session,
        "at": _iso(fact.at),
        "trust": fact.trust,
        "category": fact.category,
        "tags": fact.tags.split(),
    }


def _iso(at: int) -> str:
    said = datetime.fromtimestamp(min(max(at, 0), LAST_MS) / 1000, UTC)
    return said.isoformat(timespec="seconds")
