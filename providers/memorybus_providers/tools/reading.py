"""Running the tools that only read (see `arguments`)."""

from collections.abc import Sequence
from datetime import UTC, tzinfo

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.finding.names import connections, facts_naming, names_beside
from memorybus_providers.finding.search import FactSearch
from memorybus_providers.finding.validity import FactValidity
from memorybus_providers.language.query import parse_question
from memorybus_providers.ranking.ranking import Fact, Scored
from memorybus_providers.tools.arguments import (
    Contradict,
    Listing,
    Probe,
    Reading,
    ReasonAbout,
    Related,
    Search,
    SessionSearch,
    parse_time,
)
from memorybus_providers.tools.shown import (
    ToolResult,
    iso,
    show_fact,
    show_facts,
    show_scored,
)


class ReadingTools:
    """Answers the tools that only read, within the caller's scope."""

    def __init__(self, search: FactSearch, now: int, zone: tzinfo = UTC) -> None:
        """Read what `search` reads.

        Args:
            search: the facts.
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
        found: Sequence[Fact] = ()
        match call:
            case Search():
                scored = self._search(call, scope)
                found = [one.fact for one in scored]
                result: ToolResult = {"results": show_scored(scored)}
            case Probe():
                naming = facts_naming(call.entity, self._source, scope)
                found = [fact for fact in naming if call.category in {"", fact.category}]
                found = found[: call.limit]
                result = {"results": show_scored(self._validity.mark(found, scope))}
            case Related():
                result = self._related(call, scope)
            case ReasonAbout():
                result = self._reason(call, scope)
            case Contradict():
                scored = self._corrected(call, scope)
                found = [one.fact for one in scored]
                result = {"results": show_scored(scored)}
            case Listing():
                kept = self._source.kept_facts(call.category, scope)
                found = [fact for fact in kept if fact.trust >= call.min_trust][: call.limit]
                result = {"results": show_scored(self._validity.mark(found, scope))}
            case SessionSearch():
                result = self._sessions(call, scope)
        return {"ok": True, **result}, found

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
        said = parse_question(call.statement)
        changed = [one for one in near if one.until or one.before]
        speaks = [one for one in changed if said.asks_for(f"{one.before} {one.fact.content}")]
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
        best = list(hits.values())[: call.limit]
        sessions = [self._session(fact, call.around, scope) for fact in best]
        return {"sessions": sessions}

    def _session(self, hit: Fact, reach: int, scope: RecallScope) -> ToolResult:
        said = [
            {"speaker": one.speaker, "text": one.content, "at": iso(one.at), "hit": one == hit}
            for one in self._source.utterances_around(hit, reach, scope)
        ]
        return {"session": hit.session, "at": iso(hit.at), "id": hit.name, "said": said}
