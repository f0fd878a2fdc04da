"""Running the tools that only read (see `arguments`)."""

from collections.abc import Sequence
from datetime import UTC, tzinfo

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.finding.connections import Connections
from memorybus_providers.finding.entities import Entities, Entity
from memorybus_providers.finding.search import FactSearch
from memorybus_providers.finding.validity import FactValidity
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
    show_entity,
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
        self._connections = Connections(self._source, Entities(self._source))

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
                entity, found = self._probe(call, scope)
                told = show_scored(self._validity.mark(found, scope))
                result = {"entity": show_entity(entity), "results": told}
            case Related():
                result = self._related(call, scope)
            case ReasonAbout():
                result = self._reason(call, scope)
            case Contradict():
                found = self._validity.rivals(call.statement, scope)[: call.limit]
                result = {"results": show_facts(found)}
            case Listing():
                kept = self._source.kept_facts(call.category, scope)
                found = [fact for fact in kept if fact.trust >= call.min_trust][: call.limit]
                result = {"results": show_scored(self._validity.mark(found, scope))}
            case SessionSearch():
                result = self._sessions(call, scope)
        return {"ok": True, **result}, found

    def _probe(self, call: Probe, scope: RecallScope) -> tuple[Entity, list[Fact]]:
        entity, about = self._connections.probe(call.entity, scope)
        filed = [fact for fact in about if call.category in {"", fact.category}]
        return entity, filed[: call.limit]

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

    def _related(self, call: Related, scope: RecallScope) -> ToolResult:
        entity, companions = self._connections.related(call.entity, scope)
        related = [
            {"name": one.name, "facts": len(one.facts), "newest": show_fact(one.facts[0])}
            for one in companions[: call.limit]
        ]
        return {"entity": show_entity(entity), "related": related}

    def _reason(self, call: ReasonAbout, scope: RecallScope) -> ToolResult:
        entities, joint, bridges = self._connections.reason(call.entities, scope)
        return {
            "entities": [show_entity(entity) for entity in entities],
            "results": show_facts(joint[: call.limit]),
            "through": [
                {"name": one.name, "facts": show_facts(one.facts)} for one in bridges[: call.limit]
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
