"""Reads facts from the file: implements `FactSource`, with the parts of a search, and lists."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from memorybus_providers.base import RecallScope
from memorybus_providers.deriving.deriver import KnownConclusion
from memorybus_providers.finding import source
from memorybus_providers.finding.source import (
    LATEST_STORABLE,
    MAX_CONCLUSIONS,
    MAX_FACTS,
    MAX_PASSAGES,
    MAX_SUMMARIES,
    Extent,
    SessionSummary,
    View,
    events_by_row,
    fact_of,
    newest_of_each,
)
from memorybus_providers.holographic.rows import FACT, IS_OUT, SCOPES, limits_of
from memorybus_providers.holographic.schema import ANCHOR_EVERY, scope_prefix
from memorybus_providers.holographic.writing import corrections, curations, former
from memorybus_providers.language.query import all_words_expression, any_token_expression
from memorybus_providers.language.times import DAY_MS, Period
from memorybus_providers.language.unknown_words import TokenSpan
from memorybus_providers.ranking.facts import MARK_CHARS, SearchPool, clean
from memorybus_providers.ranking.ranking import Fact
from memorybus_providers.ranking.succession import Correction, FormerEntry

_MAX_ANCHORS = 12
_MAX_REACH_BACK_MS = 90 * DAY_MS
"""The most anchors that are read for a period in a scope, and how long before the period an anchor
may be, milliseconds (G10)."""

_SIZES = f"select id, facts, answers from scopes where id in ({SCOPES}) order by id"  # noqa: S608
_SPEAKERS = f"""
select name from entities where kind = 'speaker' and word = :about and scope in ({SCOPES})
"""  # noqa: S608
_ABOUT = f"""
select fact from fact_entities join entities on entities.id = entity
where entities.kind = 'named' and word = :about and scope in ({SCOPES})
"""  # noqa: S608
_SEEN = f"""
facts.at <= :known_by and (
    :about = '' or facts.speaker = :about or facts.speaker in ({_SPEAKERS})
    or facts.id in ({_ABOUT})
)
"""
_WITHIN = f"facts.scope in ({SCOPES}) and {_SEEN}"
_NAMES = f"""
select word from entities
where kind = 'speaker' and scope in ({SCOPES}) and word in (select value from json_each(:words))
"""  # noqa: S608
# `cross join` makes SQLite take the parts of the question first, each with one seek in the index.
_BETWEEN = """
select word.key, scope.value, substr(term, length(scope.value) + 1), doc
from json_each(:scopes) scope cross join json_each(:ranges) word cross join vocabulary
where term >= scope.value || json_extract(word.value, '$[0]')
    and term < scope.value || json_extract(word.value, '$[1]')
limit :most
"""
# The rows come as one JSON list: SQLite writes it, and msgspec reads it, in half the time of rows.
_SEARCH = "select json_group_array(rowid) from facts_fts where facts_fts match :match"
# `cross join` makes SQLite use the full-text index first, which excludes most facts.
_SEARCH_NARROWED = f"""
select json_group_array(facts.id) from facts_fts cross join facts on facts.id = facts_fts.rowid
where facts_fts match :match and {_WITHIN}
"""  # noqa: S608  constants of our own
_AMONG = f"""
select id from facts where id in (select value from json_each(:near)) and {_WITHIN}
"""  # noqa: S608
# The index `facts_by_time` finds the last anchors before the end of each period. What was said in
# the period is one of these anchors, or follows one of them before the next anchor.
_SAID_WITHIN = f"""
with asked as materialized (
    select key as period, json_extract(value, '$[0]') as low, json_extract(value, '$[1]') as high
    from json_each(:periods)
)
select period, facts.at, facts.id
from asked cross join scopes cross join facts anchor on anchor.id in (
    select id from facts as near where near.scope = scopes.id and near.seq % {ANCHOR_EVERY} = 0
        and near.at < high and near.at >= low - {_MAX_REACH_BACK_MS}
    order by near.at desc limit {_MAX_ANCHORS}
)
cross join facts on facts.session = anchor.session
    and facts.seq between anchor.seq and anchor.seq + {ANCHOR_EVERY - 1}
    and facts.at >= low and facts.at < high and {_SEEN}
where scopes.id in ({SCOPES})
union all
select period, facts.at, facts.id from asked cross join facts
    on facts.scope in ({SCOPES}) and facts.seq is null and facts.at >= low and facts.at < high
    and {_SEEN}
"""  # noqa: S608
_WITH_NEIGHBOURS = f"""
{FACT} where facts.scope in ({SCOPES}) and facts.id in (
    select value from json_each(:found)
    union
    select near.id from json_each(:found) join facts hit on hit.id = value
    join facts near on near.session = hit.session
        and hit.kind <> 'answer' and near.seq between hit.seq - :reach and hit.seq + :reach
        and (near.kind <> 'answer' or near.seq = hit.seq + 1) and near.at <= :known_by
)
"""  # noqa: S608
_NEWEST = "order by facts.at desc, facts.id desc limit :most"
_HOLDING = f"""
{FACT} where facts.id in (
    select rowid from facts_fts where facts_fts match :match order by rowid desc limit :reach
) and facts.scope in ({SCOPES}) and facts.at <= :at {_NEWEST}
"""  # noqa: S608  constants of our own
_KEPT = f"""
{FACT} where facts.scope in ({SCOPES}) and facts.seq is null
    and (:category = '' or facts.category = :category) {_NEWEST}
"""
# The name of what was said begins with the mark of its session: no index has the names of facts.
_CALLED = f"""
with named as materialized (select value as name from json_each(:names))
{FACT} where facts.id in (
    select kept.id from facts kept
    where kept.scope in ({SCOPES}) and kept.seq is null and kept.name in named
    union all
    select said.id from named cross join sessions place on place.scope in ({SCOPES})
        and place.mark = substr(named.name, 1, {MARK_CHARS})
    cross join facts said
        on said.session = place.id and said.seq is not null and said.name = named.name
) {_NEWEST}
"""  # noqa: S608
_AROUND = f"""
{FACT} where facts.scope in ({SCOPES}) and facts.session = :session
    and facts.seq between :first and :last order by facts.seq
"""
# Of the newest sessions, those in which a person spoke most recently.
_LAST_SESSIONS = f"""
select id from (
    select id, (
        select at from facts where session = recent.id and seq is not null and kind = 'user'
            and at <= :known_by order by seq desc limit 1
    ) as said_at
    from (
        select id from sessions where scope in ({SCOPES})
        order by id desc limit {source.MAX_RECENT_SESSIONS}
    ) recent
) where said_at is not null order by said_at desc, id desc limit {source.MAX_SESSIONS}
"""  # noqa: S608  constants of our own
_ESSENTIALS = f"""
with last_session as materialized ({_LAST_SESSIONS})
{FACT} where facts.id in (
    select id from (
        select id from facts where scope in ({SCOPES}) and seq is null and at <= :known_by
            and not exists (
                select 1 from curations
                where curations.scope = facts.scope and fact = facts.name and {IS_OUT}
            )
        order by at desc limit {source.MAX_KEPT}
    )
    union
    select id from (
        select said.id from last_session cross join facts said on said.id in (
            select id from facts where session = last_session.id and seq is not null
                and kind = 'user' and at <= :known_by order by seq desc limit {source.MAX_SAID}
        )
    )
)
"""  # noqa: S608  constants of our own
_CONCLUSIONS = f"""
select event_id, kind, content, at, deriver, supersedes, (
    select json_group_array(source) from derived_sources
    where derived_sources.scope = recent.scope and derived_sources.derived = event_id
) from (
    select derived.*, row_number() over (
        partition by kind, deriver order by at desc, event_id desc
    ) as place
    from derived join sessions on sessions.id = derived.session
    where derived.scope in ({SCOPES}) and content != ''
        and (kind in ('fact', 'profile') or sessions.name = :session)
) as recent where place <= :most order by at desc, event_id desc
"""  # noqa: S608  constants of our own
_SUMMARIES = f"""
select recent.session, sessions.name, root, content from (
    select session, at, content, row_number() over (
        partition by session, deriver order by at desc, event_id desc
    ) as place
    from derived where scope in ({SCOPES}) and kind = 'summary' and content != ''
) as recent join sessions on sessions.id = recent.session
where place = 1 order by at desc, recent.session desc limit :most
"""  # noqa: S608  constants of our own
_SAID_IN = f"""
select * from (
    {FACT} where facts.session in (
        select id from sessions where scope in ({SCOPES}) and name = :session and root = :root
    ) and facts.seq is not null and facts.at <= :known_by order by facts.seq desc limit :most
) order by seq
"""  # noqa: S608
_SOURCES_OF = f"""
select facts.id, source from json_each(:rows) cross join facts on facts.id = value
cross join sources on sources.fact = facts.id
cross join derived_sources
    on derived_sources.scope = facts.scope and derived = lower(hex(sources.event_id))
where facts.scope in ({SCOPES})
"""  # noqa: S608
_SAID_BETWEEN = "select 1 from sources where fact = ? and at > ? and at <= ? limit 1"

_rows = msgspec.json.Decoder(list[int])
_sources = msgspec.json.Decoder(list[str]).decode


class SqliteFacts:
    """Reads facts through one connection, without a lock."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    # -- what a search is made of -------------------------------------------------------------

    def extent(self, scope: RecallScope, pool: SearchPool = "talk") -> Extent:
        """Return how many facts a pool has, and the prefix of each scope's tokens."""
        rows = self._db.execute(_SIZES, limits_of(self._db, scope)).fetchall()
        sizes = [(row, answers if pool == "answers" else facts) for row, facts, answers in rows]
        scopes = [scope_prefix(row, pool) for row, size in sizes if size]
        return Extent(sum(size for _, size in sizes), scopes)

    def speakers(self, words: Sequence[str], scope: RecallScope) -> frozenset[str]:
        """Return the folded words that are part of a speaker's name."""
        limits = limits_of(self._db, scope)
        rows = self._db.execute(_NAMES, {"words": json.dumps(words), **limits})
        return frozenset(row[0] for row in rows)

    def tokens(
        self, spans: Sequence[TokenSpan], scopes: Sequence[str], most: int
    ) -> Iterable[tuple[int, str, str, int]]:
        """Return the tokens of the index within the spans."""
        given = {"scopes": json.dumps(scopes), "ranges": json.dumps(spans), "most": most}
        return self._db.execute(_BETWEEN, given)

    def matching_rows(
        self, terms: Sequence[Sequence[str]], scopes: Sequence[str], view: View
    ) -> Iterator[list[int]]:
        limits = self._limits(view)
        search = _SEARCH_NARROWED if view.narrowed else _SEARCH
        for forms in terms:
            match = any_token_expression(forms, scopes)
            (rows,) = self._db.execute(search, {"match": match, **limits}).fetchone()
            yield _rows.decode(rows)

    def visible_rows(self, rows: Sequence[int], view: View) -> list[int]:
        """Return those of the rows that a view may see."""
        given = {"near": json.dumps(rows), **self._limits(view)}
        return [row[0] for row in self._db.execute(_AMONG, given)]

    def rows_said_within(self, periods: Sequence[Period], most: int, view: View) -> list[list[int]]:
        """Return for each period the newest rows of what was said in it, at most `most`."""
        spans = json.dumps([(period.start, period.end) for period in periods])
        found = self._db.execute(_SAID_WITHIN, {"periods": spans, **self._limits(view)})
        return newest_of_each(found, len(periods), most)

    def facts_with_neighbours(self, rows: Sequence[int], reach: int, view: View) -> list[Fact]:
        """Return the facts of these rows, and the utterances around each."""
        given = {"found": json.dumps(rows), "reach": reach, **self._limits(view)}
        return [fact_of(*row) for row in self._db.execute(_WITH_NEIGHBOURS, given)]

    # -- lists --------------------------------------------------------------------------------

    def facts_holding(
        self,
        phrases: Iterable[Sequence[str]],
        scope: RecallScope,
        *,
        most: int = MAX_FACTS,
        as_of: int | None = None,
    ) -> list[Fact]:
        """Return facts that contain all words of at least one phrase, in any order."""
        scopes = [*self.extent(scope).scopes, *self.extent(scope, "answers").scopes]
        match = all_words_expression(dict.fromkeys(" ".join(phrase) for phrase in phrases), scopes)
        if not match:
            return []
        # The highest rows are usually the newest, except after a replay. To sort all matching rows
        # by their time would take too long.
        reach, known_by = (most, LATEST_STORABLE) if as_of is None else (-1, as_of)
        return self._facts(_HOLDING, scope, match=match, reach=reach, most=most, at=known_by)

    def kept_facts(self, category: str, scope: RecallScope) -> list[Fact]:
        """Return facts that somebody chose to keep, only those of `category` if it is not empty."""
        return self._facts(_KEPT, scope, category=clean(category))

    def facts_by_name(self, names: Iterable[str], scope: RecallScope) -> dict[str, Fact]:
        asked = json.dumps(list(names))
        return {fact.name: fact for fact in self._facts(_CALLED, scope, names=asked)}

    def utterances_around(self, fact: Fact, reach: int, scope: RecallScope) -> list[Fact]:
        """Return a fact with the `reach` utterances before and after it."""
        if fact.place is None:
            return []
        session, seq = fact.place
        place = {"session": session, "first": seq - reach, "last": seq + reach}
        return self._facts(_AROUND, scope, **place)

    def essentials(self, view: View) -> list[Fact]:
        """Return the newest kept facts, and what people said last."""
        return [fact_of(*row) for row in self._db.execute(_ESSENTIALS, self._limits(view))]

    # -- what was concluded -------------------------------------------------------------------

    def conclusions(self, session: str, scope: RecallScope) -> list[KnownConclusion]:
        """Return conclusions about a session and its person, the newest first."""
        given = {"session": clean(session), "most": MAX_CONCLUSIONS}
        limits = limits_of(self._db, scope)
        return [
            KnownConclusion(
                *(name, kind, text, at, deriver),
                *(frozenset(_sources(sources)), frozenset(gone.split())),
            )
            for name, kind, text, at, deriver, gone, sources in self._db.execute(
                _CONCLUSIONS, given | limits
            )
        ]

    def summaries(self, scope: RecallScope) -> list[SessionSummary]:
        """Return the newest summary of each session and deriver, the newest first."""
        given = {"most": MAX_SUMMARIES, **limits_of(self._db, scope)}
        return [SessionSummary(*row) for row in self._db.execute(_SUMMARIES, given)]

    def said_in(self, session: str, root: str, known_by: int, scope: RecallScope) -> list[Fact]:
        """Return the newest passages of a session until a time, in order."""
        named = {"session": clean(session), "root": clean(root)}
        return self._facts(_SAID_IN, scope, most=MAX_PASSAGES, known_by=known_by, **named)

    def sources_of(self, rows: Sequence[int], scope: RecallScope) -> dict[int, set[str]]:
        """Return the events from which conclusions came, by the conclusions' rows."""
        given = {"rows": json.dumps(rows), **limits_of(self._db, scope)}
        return events_by_row(self._db.execute(_SOURCES_OF, given))

    # -- what changed -------------------------------------------------------------------------

    def corrections(self, scope: RecallScope) -> list[Correction]:
        """Return corrections, the newest first."""
        return corrections.known_corrections(self._db, scope)

    def former_entries(self, scope: RecallScope) -> list[FormerEntry]:
        """Return former entries of the stores, those that ended last first."""
        return former.former_entries(self._db, scope)

    def out_of_prompts(self, scope: RecallScope) -> frozenset[int]:
        """Return the rows of archived facts, without those that were used since."""
        return curations.out_of_prompts(self._db, scope)

    def was_said_between(self, fact: Fact, after: int, until: int) -> bool:
        """Return whether a note was said again later than `after`, and not later than `until`."""
        return self._db.execute(_SAID_BETWEEN, (fact.id, after, until)).fetchone() is not None

    def _facts(self, query: str, scope: RecallScope, **given: str | int) -> list[Fact]:
        rows = self._db.execute(query, {**limits_of(self._db, scope), "most": MAX_FACTS, **given})
        return [fact_of(*row) for row in rows]

    def _limits(self, view: View) -> dict[str, str | int]:
        scopes = limits_of(self._db, view.scope)
        return {**scopes, "about": view.about, "known_by": view.known_by}
