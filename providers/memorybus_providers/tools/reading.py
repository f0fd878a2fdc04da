"""Running the tools (see `arguments`): those that only read, and those that write.

A tool that writes runs inside the transaction that its caller has open.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import chain, islice, zip_longest
from typing import Any

from memorybus.events import MemoryState

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.deriving.extractive import ExtractiveDeriver
from memorybus_providers.finding.names import connections, facts_naming, names_beside
from memorybus_providers.finding.search import FactSearch
from memorybus_providers.finding.source import LATEST_STORABLE, FactSource
from memorybus_providers.finding.validity import FactValidity
from memorybus_providers.language.query import parse_question
from memorybus_providers.language.sentences import split_prompt
from memorybus_providers.language.words import folded_words
from memorybus_providers.ranking.ranking import LAST_MS, Fact, Scored
from memorybus_providers.ranking.succession import Correction
from memorybus_providers.remembering.notes import KINDS, NOTE, Note
from memorybus_providers.remembering.parts import Parts
from memorybus_providers.tools.arguments import (
    Add,
    Contradict,
    Correct,
    Feedback,
    ForgetFact,
    Listing,
    Pin,
    Probe,
    Reading,
    ReasonAbout,
    Related,
    Search,
    SessionSearch,
    Writing,
    parse_time,
)

ToolResult = dict[str, Any]


class ReadingTools:
    """Answers the tools that only read, within the caller's scope."""

    def __init__(self, search: FactSearch, now: int, zone: tzinfo = UTC) -> None:
        """Read what `search` reads.

        Args:
            now: the time of the call, milliseconds.
            zone: the time zone in which days begin.
        """
        self._now, self._zone = now, zone
        self._search_by = search
        self._source = search.source
        self._validity = FactValidity(self._source)

    def answer(self, call: Reading, ctx: HookContext) -> tuple[ToolResult, Sequence[Fact]]:
        """Return the result of a call, and the facts that were looked for and found."""
        scope = RecallScope.own(ctx.scope)
        facts: Sequence[Fact] = ()
        match call:
            case Search():
                scored = self._search(call, scope)
                facts = [one.fact for one in scored]
                result: ToolResult = {"results": show_scored(scored)}
            case Probe():
                naming = facts_naming(call.entity, self._source, scope)
                facts = [fact for fact in naming if call.category in {"", fact.category}]
                facts = facts[: call.limit]
                result = {"results": show_scored(self._validity.mark(facts, scope))}
            case Related():
                result = self._related(call, scope)
            case ReasonAbout():
                result = self._reason(call, scope)
            case Contradict():
                scored = self._corrected(call, scope)
                facts = [one.fact for one in scored]
                result = {"results": show_scored(scored)}
            case Listing():
                kept = self._source.kept_facts(call.category, scope)
                facts = [fact for fact in kept if fact.trust >= call.min_trust][: call.limit]
                result = {"results": show_scored(self._validity.mark(facts, scope))}
            case SessionSearch():
                result = self._sessions(call, scope)
        return {"ok": True, **result}, facts

    def _search(self, call: Search, scope: RecallScope) -> list[Scored]:
        found = [
            one
            for one in self._search_by.answer(
                call.query,
                scope,
                call.about,
                parse_time(call.as_of),
                now=self._now,
                zone=self._zone,
            )
            if call.category in {"", one.fact.category} and one.fact.trust >= call.min_trust
        ]
        return found[: call.limit]

    def _corrected(self, call: Contradict, scope: RecallScope) -> list[Scored]:
        """Return the facts near a statement that were put right, and what put them right."""
        near = self._search_by.answer(call.statement, scope, now=self._now, zone=self._zone)
        question = parse_question(call.statement)
        changed = [one for one in near if one.until or one.before]
        speaks = [one for one in changed if question.asks_for(f"{one.before} {one.fact.content}")]
        return speaks[: call.limit]

    def _related(self, call: Related, scope: RecallScope) -> ToolResult:
        facts = facts_naming(call.entity, self._source, scope)
        related = [
            {"name": one.name, "facts": len(one.facts), "newest": show_fact(one.facts[0])}
            for one in names_beside(call.entity, facts)[: call.limit]
        ]
        return {"related": related}

    def _reason(self, call: ReasonAbout, scope: RecallScope) -> ToolResult:
        joint, through = connections(call.entities, self._source, scope)
        return {
            "results": show_facts(joint[: call.limit]),
            "through": [
                {"name": one.name, "facts": show_facts(one.facts)} for one in through[: call.limit]
            ],
        }

    def _sessions(self, call: SessionSearch, scope: RecallScope) -> ToolResult:
        hits: dict[int, Fact] = {}
        for one in self._search_by.answer(call.query, scope, now=self._now, zone=self._zone):
            if one.fact.place is not None:
                hits.setdefault(one.fact.place[0], one.fact)
        summed_up = self._summed_up(call, scope)
        # In turn, so that neither a word that many have said nor a summary hides the other.
        rows = filter(None, chain.from_iterable(zip_longest(hits, summed_up)))
        best = (hits.get(row) or summed_up[row] for row in dict.fromkeys(rows))
        sessions = [self._session(fact, call.around, scope) for fact in islice(best, call.limit)]
        return {"sessions": sessions}

    def _summed_up(self, call: SessionSearch, scope: RecallScope) -> dict[int, Fact]:
        """Return a passage of each session whose summary has all words, the newest first."""
        question = parse_question(*split_prompt(call.query)).without_asking_terms()
        asked = {term.stem for term in question.terms if not term.extra}
        found: dict[int, Fact] = {}
        for summary in self._source.summaries(scope) if asked else ():
            if len(found) < call.limit and asked.issubset(
                term.stem for term in question.terms_in(summary.text)
            ):
                said = self._source.said_in(summary.session, summary.root, LATEST_STORABLE, scope)
                if said:
                    nearest = max(said, key=lambda fact: len(question.terms_in(fact.content)))
                    found[summary.row] = nearest
        return found

    def _session(self, hit: Fact, reach: int, scope: RecallScope) -> ToolResult:
        said = [
            {"speaker": one.speaker, "text": one.content, "at": iso(one.at), "hit": one == hit}
            for one in self._source.utterances_around(hit, reach, scope)
        ]
        place = {"session": hit.session, "at": iso(hit.at), "id": hit.name}
        return place | self._conclusions(hit.session, scope) | {"said": said}

    def _conclusions(self, session: str, scope: RecallScope) -> ToolResult:
        """Return the newest summary and topics of a session, each with the id of its event.

        What a model paraphrased goes before chosen sentences, which are there already.
        """
        newest: ToolResult = {}
        known = self._source.conclusions(session, scope)
        for conclusion in sorted(known, key=lambda each: each.deriver == ExtractiveDeriver.name):
            if conclusion.kind in {"summary", "topic"}:
                shown = {"text": conclusion.text, "id": conclusion.id}
                newest.setdefault(conclusion.kind, shown | {"deriver": conclusion.deriver})
        return newest


def failure_result(why: str) -> ToolResult:
    """Return the result of a call that failed and changed nothing."""
    return {"ok": False, "error": why}


def _no_fact(name: str) -> ToolResult:
    return failure_result(f"no fact {name}: give the id that memory_search shows")


def show_facts(facts: Iterable[Fact]) -> list[ToolResult]:
    return [show_fact(fact) for fact in facts]


def show_scored(found: Iterable[Scored]) -> list[ToolResult]:
    """Return facts as they are shown, with `until` and `before`."""
    return [show_fact(one.fact, one.until, one.before) for one in found]


def show_fact(fact: Fact, until: int = 0, before: str = "") -> ToolResult:
    marks: ToolResult = {"until": iso(until)} if until else {}
    marks |= {"before": before} if before else {}
    marks |= {"archived": True} if fact.archived else {}
    return {
        "id": fact.name,
        "text": fact.content,
        "kind": fact.kind,
        "speaker": fact.speaker,
        "session": fact.session,
        "at": iso(fact.at),
        "trust": fact.trust,
        "category": fact.category,
        "tags": fact.tags.split(),
        **marks,
    }


def iso(at: int) -> str:
    """Return a time in milliseconds as ISO 8601, to the second."""
    said = datetime.fromtimestamp(min(max(at, 0), LAST_MS) / 1000, UTC)
    return said.isoformat(timespec="seconds")


class WritingTools:
    """Writes by the parts of a store."""

    def __init__(self, parts: Parts, source: FactSource) -> None:
        self._parts = parts
        self._source = source

    def write(self, call: Writing, ctx: HookContext) -> ToolResult:
        """Run a tool once per event id; a call that comes again gets its first result."""
        before = self._parts.results.get(ctx.event_id)
        if before is not None:
            return dict(json.loads(before))
        result = self._run(call, ctx)
        self._parts.results.put(ctx.event_id, json.dumps(result))
        return result

    def _run(self, call: Writing, ctx: HookContext) -> ToolResult:
        match call:
            case Add():
                return self._add(call, ctx)
            case Correct():
                return self._correct(call, ctx)
            case Feedback():
                return self._judge(call, ctx)
            case Pin():
                return self._pin(call, ctx)
            case ForgetFact():
                return self._forget(call, ctx)

    def _correct(self, call: Correct, ctx: HookContext) -> ToolResult:
        if bool(call.fact_id) is bool(call.old_text.strip()):
            return failure_result("memory_correct: give fact_id or old_text, and not both")
        wrong = self._find_wrong(call, ctx)
        # What is not said anew stays as it was filed.
        category = call.category or next((one.category for one in wrong if one.category), "")
        tags = " ".join(call.tags) or next((one.tags for one in wrong if one.tags), "")
        note = Note(NOTE, call.content, category, tags)
        name = self._parts.notes.add(note, ctx) or ""
        made = self._parts.corrections.add(call.fact_id, call.old_text, name, ctx)
        replaced = [show_fact(fact) for fact in wrong if made.corrects(fact)]
        return {"ok": True, "id": name, "replaces": replaced}

    def _find_wrong(self, call: Correct, ctx: HookContext) -> list[Fact]:
        """Return the facts that a call names, as they are before it."""
        scope = RecallScope.own(ctx.scope)
        if call.fact_id:
            return list(self._source.facts_by_name([call.fact_id], scope).values())
        named = Correction("", call.old_text, "", ctx.at)
        near = self._source.facts_holding([folded_words(call.old_text)], scope)
        return [fact for fact in near if named.corrects(fact)]

    def _add(self, call: Add, ctx: HookContext) -> ToolResult:
        note = Note(NOTE, call.content, call.category, " ".join(call.tags))
        return {"ok": True, "id": self._parts.notes.add(note, ctx)}

    def _pin(self, call: Pin, ctx: HookContext) -> ToolResult:
        state: MemoryState = "pinned" if call.pinned else "active"
        newest = self._parts.curations.set(call.fact_id, state, "", ctx)
        fact = self._find_fact(call.fact_id, ctx)
        if fact is None:
            return _no_fact(call.fact_id)
        if fact.place is not None:
            return failure_result(
                "memory_pin: what was said never ages; store what matters with memory_add, and pin "
                "that"
            )
        if not newest:
            return failure_result("memory_pin: a later change of this fact is known; ask again")
        return {"ok": True, "id": call.fact_id, "pinned": call.pinned}

    def _forget(self, call: ForgetFact, ctx: HookContext) -> ToolResult:
        fact = self._find_fact(call.fact_id, ctx)
        if fact is not None and fact.kind in KINDS.values():
            return failure_result(
                "memory_forget: this is an entry of your own memory files; remove it there"
            )
        self._parts.curations.forget(call.fact_id, ctx)
        self._parts.notes.forget_name(call.fact_id, ctx)
        self._parts.utterances.forget_name(call.fact_id, ctx)
        if fact is not None:
            lost = self._parts.derivations.retract([fact.event], ctx)
            self._parts.notes.retract(lost, ctx)
            self._parts.corrections.retract(lost, ctx)
        return {"ok": True, "id": call.fact_id} if fact else _no_fact(call.fact_id)

    def _find_fact(self, name: str, ctx: HookContext) -> Fact | None:
        return self._source.facts_by_name([name], RecallScope.own(ctx.scope)).get(name)

    def _judge(self, call: Feedback, ctx: HookContext) -> ToolResult:
        trust = self._parts.judgements.add(call.fact_id, ctx, helpful=call.helpful)
        if trust is None:
            return _no_fact(call.fact_id)
        return {"ok": True, "id": call.fact_id, "trust": trust}
