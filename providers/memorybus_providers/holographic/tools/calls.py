"""Running the tools a model may call (see `tool_arguments`), and what it is shown."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.holographic.finding.connections import Connections
from memorybus_providers.holographic.finding.entities import Entities, Entity
from memorybus_providers.holographic.finding.lookup import FactLookup
from memorybus_providers.holographic.finding.recall import FactSearch
from memorybus_providers.holographic.finding.standing import Standings
from memorybus_providers.holographic.tools.arguments import (
    Add,
    Contradict,
    Correct,
    Feedback,
    Listing,
    Probe,
    Reading,
    Reason,
    Related,
    Search,
    SessionSearch,
    Writing,
    moment,
)
from memorybus_providers.holographic.writing.corrections import Corrections
from memorybus_providers.holographic.writing.entries import NOTE, KeptFacts, Note
from memorybus_providers.holographic.writing.judgements import Judgements
from memorybus_providers.language.mentions import words
from memorybus_providers.ranking.ranking import LAST_MS, Fact, Scored

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
        self._standings = Standings(db)
        self._connections = Connections(self._lookup, Entities(self._lookup))

    def answer(self, call: Reading, ctx: HookContext) -> tuple[Result, Sequence[Fact]]:
        """Return the result of a call, and the facts that were looked for and found."""
        whose = RecallScope.own(ctx.scope)
        found: Sequence[Fact] = ()
        match call:
            case Search():
                scored = self._search(call, whose)
                found = [one.fact for one in scored]
                result: Result = {"results": _marked(scored)}
            case Probe():
                entity, found = self._probe(call, whose)
                told = _marked(self._standings.marked(found, whose))
                result = {"entity": _entity(entity), "results": told}
            case Related():
                result = self._related(call, whose)
            case Reason():
                result = self._reason(call, whose)
            case Contradict():
                found = self._standings.rivals(call.statement, whose)[: call.limit]
                result = {"results": _listed(found)}
            case Listing():
                kept = self._lookup.kept(call.category, whose)
                found = [fact for fact in kept if fact.trust >= call.min_trust][: call.limit]
                result = {"results": _marked(self._standings.marked(found, whose))}
            case SessionSearch():
                result = self._sessions(call, whose)
        return {"ok": True, **result}, found

    def _probe(self, call: Probe, whose: RecallScope) -> tuple[Entity, list[Fact]]:
        entity, about = self._connections.probe(call.entity, whose)
        filed = [fact for fact in about if call.category in {"", fact.category}]
        return entity, filed[: call.limit]

    def _search(self, call: Search, whose: RecallScope) -> list[Scored]:
        found = [
            one
            for one in self._recall.answer(call.query, whose, call.about, moment(call.as_of))
            if call.category in {"", one.fact.category} and one.fact.trust >= call.min_trust
        ]
        return found[: call.limit]

    def _related(self, call: Related, whose: RecallScope) -> Result:
        entity, companions = self._connections.related(call.entity, whose)
        related = [
            {"name": one.name, "facts": len(one.facts), "newest": _shown(one.facts[0])}
            for one in companions[: call.limit]
        ]
        return {"entity": _entity(entity), "related": related}

    def _reason(self, call: Reason, whose: RecallScope) -> Result:
        entities, joint, bridges = self._connections.reason(call.entities, whose)
        return {
            "entities": [_entity(entity) for entity in entities],
            "results": _listed(joint[: call.limit]),
            "through": [
                {"name": one.name, "facts": _listed(one.facts)} for one in bridges[: call.limit]
            ],
        }

    def _sessions(self, call: SessionSearch, whose: RecallScope) -> Result:
        hits: dict[int, Fact] = {}
        for one in self._recall.answer(call.query, whose):
            if one.fact.place is not None:
                hits.setdefault(one.fact.place[0], one.fact)
        best = list(hits.values())[: call.limit]
        sessions = [self._session(fact, call.around, whose) for fact in best]
        return {"sessions": sessions}

    def _session(self, hit: Fact, reach: int, whose: RecallScope) -> Result:
        said = [
            {"speaker": one.speaker, "text": one.content, "at": _iso(one.at), "hit": one == hit}
            for one in self._lookup.around(hit, reach, whose)
        ]
        return {"session": hit.session, "at": _iso(hit.at), "id": hit.name, "said": said}


class WritingTools:
    """Runs the tools that write, inside the transaction their caller has open."""

    def __init__(
        self,
        db: sqlite3.Connection,
        kept: KeptFacts,
        corrections: Corrections,
        judgements: Judgements,
    ) -> None:
        """Work on the provider's own parts."""
        self._db = db
        self._lookup = FactLookup(db)
        self._corrections = corrections
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
        result = self._run(call, ctx)
        seq = self._db.execute(
            "insert into tool_results(event_id, result) values (?, ?) returning seq",
            (event_id, json.dumps(result)),
        ).fetchone()[0]
        self._db.execute("delete from tool_results where seq <= ?", (seq - RESULTS_KEPT,))
        return result

    def _run(self, call: Writing, ctx: HookContext) -> Result:
        match call:
            case Add():
                return self._add(call, ctx)
            case Correct():
                return self._correct(call, ctx)
            case Feedback():
                return self._judge(call, ctx)

    def _correct(self, call: Correct, ctx: HookContext) -> Result:
        if bool(call.fact_id) is bool(call.old_text.strip()):
            return failed("memory_correct: give fact_id or old_text, and not both")
        note = Note(NOTE, call.content, call.category, " ".join(call.tags))
        name = self._kept.add(note, ctx) or ""
        made = self._corrections.add(call.fact_id, call.old_text, name, ctx)
        whose = RecallScope.own(ctx.scope)
        near = (
            self._lookup.called([call.fact_id], whose).values()
            if call.fact_id
            else self._lookup.holding([words(call.old_text)], whose)
        )
        replaced = [_shown(fact) for fact in near if made.means(fact)]
        return {"ok": True, "id": name, "replaces": replaced}

    def _add(self, call: Add, ctx: HookContext) -> Result:
        note = Note(NOTE, call.content, call.category, " ".join(call.tags))
        return {"ok": True, "id": self._kept.add(note, ctx)}

    def _judge(self, call: Feedback, ctx: HookContext) -> Result:
        trust = self._judgements.add(call.fact_id, ctx, helpful=call.helpful)
        if trust is None:
            return failed(f"no fact {call.fact_id}: give the id that memory_search shows")
        return {"ok": True, "id": call.fact_id, "trust": trust}


def _listed(found: Iterable[Fact]) -> list[Result]:
    return [_shown(fact) for fact in found]


def _marked(found: Iterable[Scored]) -> list[Result]:
    return [_shown(one.fact, one.until, one.before) for one in found]


def _entity(entity: Entity) -> Result:
    aliases, roles = list(entity.aliases), list(entity.roles)
    return {"name": entity.name, "kind": entity.kind, "aliases": aliases, "roles": roles}


def _shown(fact: Fact, until: int = 0, before: str = "") -> Result:
    marks = {"until": _iso(until)} if until else {}
    marks |= {"before": before} if before else {}
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
        **marks,
    }


def _iso(at: int) -> str:
    said = datetime.fromtimestamp(min(max(at, 0), LAST_MS) / 1000, UTC)
    return said.isoformat(timespec="seconds")
