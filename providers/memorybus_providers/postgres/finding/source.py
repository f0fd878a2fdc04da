"""Reads facts from the tables: implements `FactSource`, with one round trip for each question."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

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
    newest_of_each,
)
from memorybus_providers.language.query import phrase_tokens
from memorybus_providers.language.times import Period
from memorybus_providers.language.unknown_words import TokenSpan
from memorybus_providers.language.words import MARK
from memorybus_providers.postgres.finding.rows import FACT, facts_of
from memorybus_providers.postgres.link import Connection
from memorybus_providers.postgres.texts import LONGEST_NAME, decode_text, encode_text
from memorybus_providers.postgres.writing.curations import IS_OUT
from memorybus_providers.postgres.writing.index import pool_number
from memorybus_providers.postgres.writing.places import scope_key
from memorybus_providers.ranking.facts import SearchPool
from memorybus_providers.ranking.ranking import Fact
from memorybus_providers.ranking.succession import Correction, FormerEntry
from memorybus_providers.ranking.trust import INITIAL_TRUST

MAX_CORRECTIONS = 1_000
MAX_FORMER = 500
"""The most corrections and former entries of a scope that are read, the newest (G10)."""

_AFTER_MARK = chr(ord(MARK) + 1)
_SCOPE = "select id from scopes where key = %s"
_SIZES = """
select scope, said.facts - said.answers + kept.facts - kept.concluded,
    said.answers + kept.concluded
from unnest(%s::bigint[]) as one(scope)
cross join lateral (
    select count(*) as facts, count(*) filter (where kind = 'fact') as concluded
    from facts where facts.scope = one.scope and seq is null
) as kept
cross join lateral (
    select coalesce(sum(said), 0) as facts, coalesce(sum(answers), 0) as answers
    from sessions where sessions.scope = one.scope
) as said order by scope
"""
_SPEAKERS = "select distinct word from speakers where scope = any(%s) and word = any(%s)"
_SEEN = """
facts.at <= %(known_by)s and (
    %(about)s = '' or facts.speaker = %(about)s
    or facts.speaker in (
        select name from speakers where scope = any(%(scopes)s) and word = %(about)s
    )
    or facts.id in (select fact from named where scope = any(%(scopes)s) and word = %(about)s)
)
"""
_WITHIN = f"facts.scope = any(%(scopes)s) and {_SEEN}"
_TOKENS = """
select span.n, one.scope::text, found.token, found.facts
from unnest(%s::int[], %s::text[], %s::text[]) as span(n, low, high)
cross join unnest(%s::bigint[]) as one(scope)
cross join lateral (
    select token, count(*) as facts from postings
    where postings.scope = one.scope and token >= span.low collate "C"
        and token < span.high collate "C"
    group by token
) as found limit %s
"""
_POSTED = """
from unnest(%(terms)s::int[], %(tokens)s::text[]) as asked(term, token)
cross join unnest(%(scopes)s::bigint[]) as one(scope)
join postings on postings.scope = one.scope and postings.token = asked.token collate "C"
"""
_MATCHING = f"select distinct asked.term, postings.fact {_POSTED}"
_NARROWED = f"{_MATCHING} join facts on facts.id = postings.fact where {_WITHIN}"
_AMONG = f"select id from facts where id = any(%(rows)s) and {_WITHIN}"  # noqa: S608
# Each scope and period takes one seek in the index, which returns rows in the order of time.
_SAID_WITHIN = f"""
select period.n, said.at, said.id
from unnest(%(numbers)s::int[], %(starts)s::bigint[], %(ends)s::bigint[]) as period(n, low, high)
cross join unnest(%(scopes)s::bigint[]) as one(scope)
cross join lateral (
    select facts.at, facts.id from facts where facts.scope = one.scope
        and facts.at >= period.low and facts.at < period.high and {_SEEN}
    order by facts.at desc, facts.id desc limit %(most)s
) as said
"""  # noqa: S608
# `offset 0` makes Postgres look up each fact's neighbours: for many facts it would otherwise join
# those of all tenants.
_WITH_NEIGHBOURS = f"""
{FACT}where facts.scope = any(%(scopes)s) and facts.id = any(array(
    select unnest(%(rows)s::bigint[])
    union
    select near.id from facts as hit cross join lateral (
        select id from facts where session = hit.session
            and seq between hit.seq - %(reach)s and hit.seq + %(reach)s
            and (kind <> 'answer' or seq = hit.seq + 1) and at <= %(known_by)s
        offset 0
    ) as near
    where hit.id = any(%(rows)s) and hit.kind <> 'answer'
))
"""  # noqa: S608
_NEWEST = "order by facts.at desc, facts.id desc limit %(most)s"
_HOLDING = f"""
{FACT}where facts.scope = any(%(scopes)s) and facts.at <= %(known_by)s and facts.id = any(array(
    select distinct fact from (
        select asked.phrase, found.fact
        from unnest(%(phrases)s::int[], %(words)s::int[], %(tokens)s::text[], %(sizes)s::int[])
            as asked(phrase, word, token, size)
        cross join unnest(%(scopes)s::bigint[] || %(answers)s::bigint[]) as one(scope)
        cross join lateral (
            select fact from postings
            where postings.scope = one.scope and postings.token = asked.token collate "C"
            union all
            select fact from postings
            where postings.scope = one.scope
                and postings.token >= (asked.token || %(mark)s) collate "C"
                and postings.token < (asked.token || %(after)s) collate "C"
        ) as found
        group by asked.phrase, asked.size, found.fact
        having count(distinct asked.word) = asked.size
    ) as whole order by fact desc limit %(reach)s
))
{_NEWEST}
"""  # noqa: S608
_KEPT = f"""
{FACT}where facts.scope = any(%(scopes)s) and facts.seq is null
    and (%(category)s = '' or facts.category = %(category)s)
{_NEWEST}
"""
_CALLED = f"""
{FACT}where facts.scope = any(%(scopes)s) and facts.name = any(%(names)s) {_NEWEST}
"""
_AROUND = f"""
{FACT}where facts.scope = any(%(scopes)s) and facts.session = %(session)s
    and facts.seq between %(first)s and %(last)s order by facts.seq
"""
_ESSENTIALS = f"""
with last_session as materialized (
    select recent.id from (
        select id from sessions where scope = any(%(scopes)s) order by id desc limit %(recent)s
    ) as recent
    cross join lateral (
        select at from facts where session = recent.id and seq is not null and kind = 'user'
            and at <= %(known_by)s order by seq desc limit 1
    ) as said
    order by said.at desc, recent.id desc limit %(sessions)s
)
{FACT}where facts.id = any(array(
    (select id from facts where scope = any(%(scopes)s) and seq is null and at <= %(known_by)s
        and not exists (
            select 1 from curations
            where curations.scope = facts.scope and fact = facts.name and {IS_OUT}
        )
    order by at desc limit %(kept)s)
    union
    (select said.id from last_session cross join lateral (
        select id from facts where session = last_session.id and seq is not null
            and kind = 'user' and at <= %(known_by)s order by seq desc limit %(said)s
    ) as said)
))
"""  # noqa: S608
_CORRECTIONS = """
select fact, old, note, at from corrections where scope = any(%s)
order by at desc, event_id desc limit %s
"""
_FORMER = """
select former.id, until, successor, former.name, sessions.name, kind, at, content,
    encode(event_id, 'hex')
from former join sessions on sessions.id = former.session
where former.scope = any(%s) order by until desc, former.id desc limit %s
"""
_CONCLUSIONS = """
select event_id, kind, content, at, deriver, supersedes, array(
    select source from derived_sources
    where derived_sources.scope = recent.scope and derived_sources.derived = event_id
) from (
    select derived.*, row_number() over (
        partition by kind, deriver order by at desc, event_id collate "C" desc
    ) as place
    from derived join sessions on sessions.id = derived.session
    where derived.scope = any(%(scopes)s) and content <> ''
        and (kind in ('fact', 'profile') or sessions.name = %(session)s)
) as recent where place <= %(most)s order by at desc, event_id collate "C" desc
"""
_SUMMARIES = """
select newest.session, sessions.name, root, content from (
    select session, at, content, row_number() over (
        partition by session, deriver order by at desc, event_id collate "C" desc
    ) as place
    from derived where scope = any(%s) and kind = 'summary' and content <> ''
) as newest join sessions on sessions.id = newest.session
where place = 1 order by at desc, newest.session desc limit %s
"""
_SAID_IN = f"""
select * from (
    {FACT}where facts.session in (
        select id from sessions
        where scope = any(%(scopes)s) and name = %(session)s and root = %(root)s
    ) and facts.seq is not null and facts.at <= %(known_by)s
    order by facts.seq desc limit %(most)s
) as newest order by seq
"""  # noqa: S608
_OUT_OF_PROMPTS = f"""
select facts.id from curations
join facts on facts.scope = curations.scope and facts.name = curations.fact and facts.seq is null
where curations.scope = any(%s) and {IS_OUT}
"""  # noqa: S608  a constant of our own
_SOURCES_OF = """
select facts.id, source from facts join sources on sources.fact = facts.id
join derived_sources on derived_sources.scope = facts.scope
    and derived = encode(sources.event_id, 'hex')
where facts.id = any(%(rows)s) and facts.scope = any(%(scopes)s)
"""
_SAID_BETWEEN = "select 1 from sources where fact = %s and at > %s and at <= %s limit 1"


class PostgresFacts:
    """Reads in the transaction that `db` has open."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._scopes: dict[RecallScope, list[int]] = {}

    def scopes(self, scope: RecallScope) -> list[int]:
        """Return the rows of the scopes that may be seen; they are looked up once."""
        if scope not in self._scopes:
            self._scopes[scope] = self._look_up_scopes(scope)
        return self._scopes[scope]

    # -- what a search is made of -------------------------------------------------------------

    def extent(self, scope: RecallScope, pool: SearchPool = "talk") -> Extent:
        """Return how many facts a pool has, and the numbers of its postings."""
        rows = self._db.execute(_SIZES, (self.scopes(scope),)).fetchall()
        sizes = [(row, int(answers if pool == "answers" else talk)) for row, talk, answers in rows]
        scopes = [str(pool_number(row, pool)) for row, size in sizes if size]
        return Extent(sum(size for _, size in sizes), scopes)

    def speakers(self, words: Sequence[str], scope: RecallScope) -> frozenset[str]:
        """Return the folded words that are part of a speaker's name."""
        given = (self.scopes(scope), [encode_text(word) for word in words])
        return frozenset(
            decode_text(row[0]) for row in self._db.execute(_SPEAKERS, given).fetchall()
        )

    def tokens(
        self, spans: Sequence[TokenSpan], scopes: Sequence[str], most: int
    ) -> Iterable[tuple[int, str, str, int]]:
        """Return the tokens within the spans."""
        low, high = ([_token(span[side]) for span in spans] for side in (0, 1))
        given = (list(range(len(spans))), low, high, [int(scope) for scope in scopes], most)
        return self._db.execute(_TOKENS, given).fetchall()

    def matching_rows(
        self, terms: Sequence[Sequence[str]], scopes: Sequence[str], view: View
    ) -> Iterator[list[int]]:
        """Return the rows that match each term; one query asks for all terms."""
        asked = [(n, _token(form)) for n, forms in enumerate(terms) for form in forms]
        found: list[list[int]] = [[] for _ in terms]
        if asked:
            numbers, forms = zip(*asked, strict=True)
            given = {"terms": list(numbers), "tokens": list(forms), **self._view_parameters(view)}
            given["scopes"] = [int(scope) for scope in scopes]
            query = _NARROWED if view.narrowed else _MATCHING
            for term, fact in self._db.execute(query, given):
                found[term].append(fact)
        return iter(found)

    def visible_rows(self, rows: Sequence[int], view: View) -> list[int]:
        """Return the rows among these that a view may see."""
        given = {"rows": list(rows), **self._view_parameters(view)}
        return [row[0] for row in self._db.execute(_AMONG, given)]

    def rows_said_within(self, periods: Sequence[Period], most: int, view: View) -> list[list[int]]:
        """Return for each period the newest rows of what was said in it, at most `most`."""
        given = {
            "numbers": list(range(len(periods))),
            "starts": [period.start for period in periods],
            "ends": [period.end for period in periods],
            "most": most,
            **self._view_parameters(view),
        }
        return newest_of_each(self._db.execute(_SAID_WITHIN, given), len(periods), most)

    def facts_with_neighbours(self, rows: Sequence[int], reach: int, view: View) -> list[Fact]:
        """Return the facts of these rows, and the utterances around each."""
        given = {"rows": list(rows), "reach": reach, **self._view_parameters(view)}
        return facts_of(self._db.execute(_WITH_NEIGHBOURS, given))

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
        asked = [
            (phrase, word, _token(token), len(set(tokens)))
            for phrase, tokens in enumerate(phrase_tokens(dict.fromkeys(map(" ".join, phrases))))
            for word, token in enumerate(dict.fromkeys(tokens))
        ]
        if not asked:
            return []
        names = ("phrases", "words", "tokens", "sizes")
        columns = dict(zip(names, map(list, zip(*asked, strict=True)), strict=True))
        reach, known_by = (most, LATEST_STORABLE) if as_of is None else (None, as_of)
        limits = {"known_by": known_by, "reach": reach, "most": most}
        answers = [pool_number(row, "answers") for row in self.scopes(scope)]
        marks = {"mark": MARK, "after": _AFTER_MARK, "answers": answers}
        return self._facts(_HOLDING, scope, **columns, **limits, **marks)

    def kept_facts(self, category: str, scope: RecallScope) -> list[Fact]:
        """Return facts that somebody chose to keep, only those of `category` if it is not empty."""
        return self._facts(_KEPT, scope, category=encode_text(category))

    def facts_by_name(self, names: Iterable[str], scope: RecallScope) -> dict[str, Fact]:
        found = self._facts(_CALLED, scope, names=[encode_text(name) for name in names])
        return {fact.name: fact for fact in found}

    def utterances_around(self, fact: Fact, reach: int, scope: RecallScope) -> list[Fact]:
        """Return a fact with the `reach` utterances before and after it."""
        if fact.place is None:
            return []
        session, seq = fact.place
        return self._facts(_AROUND, scope, session=session, first=seq - reach, last=seq + reach)

    def essentials(self, view: View) -> list[Fact]:
        """Return the newest kept facts, and what people said last."""
        most = {"kept": source.MAX_KEPT, "said": source.MAX_SAID, "sessions": source.MAX_SESSIONS}
        limits = {"known_by": view.known_by, "recent": source.MAX_RECENT_SESSIONS, **most}
        return self._facts(_ESSENTIALS, view.scope, **limits)

    # -- what was concluded -------------------------------------------------------------------

    def conclusions(self, session: str, scope: RecallScope) -> list[KnownConclusion]:
        """Return conclusions about a session and its person, the newest first."""
        given = {"session": encode_text(session), "most": MAX_CONCLUSIONS}
        rows = self._db.execute(_CONCLUSIONS, {"scopes": self.scopes(scope), **given})
        return [
            KnownConclusion(
                *(name, kind, decode_text(text), at, decode_text(deriver)),
                *(frozenset(map(decode_text, sources)), frozenset(decode_text(gone).split())),
            )
            for name, kind, text, at, deriver, gone, sources in rows
        ]

    def summaries(self, scope: RecallScope) -> list[SessionSummary]:
        """Return the newest summary of each session and deriver, the newest first."""
        rows = self._db.execute(_SUMMARIES, (self.scopes(scope), MAX_SUMMARIES))
        return [SessionSummary(row, *map(decode_text, texts)) for row, *texts in rows]

    def said_in(self, session: str, root: str, known_by: int, scope: RecallScope) -> list[Fact]:
        """Return the newest passages of a session until a time, in order."""
        named = {"session": encode_text(session), "root": encode_text(root)}
        return self._facts(_SAID_IN, scope, known_by=known_by, most=MAX_PASSAGES, **named)

    def sources_of(self, rows: Sequence[int], scope: RecallScope) -> dict[int, set[str]]:
        """Return the events from which conclusions came, by the conclusions' rows."""
        given = {"rows": list(rows), "scopes": self.scopes(scope)}
        found = self._db.execute(_SOURCES_OF, given)
        return events_by_row((row, decode_text(event)) for row, event in found)

    # -- what changed -------------------------------------------------------------------------

    def corrections(self, scope: RecallScope) -> list[Correction]:
        """Return corrections, the newest first."""
        rows = self._db.execute(_CORRECTIONS, (self.scopes(scope), MAX_CORRECTIONS))
        return [Correction(fact, decode_text(old), note, at) for fact, old, note, at in rows]

    def former_entries(self, scope: RecallScope) -> list[FormerEntry]:
        """Return former entries of the stores, those that ended last first."""
        rows = self._db.execute(_FORMER, (self.scopes(scope), MAX_FORMER))
        return [_former_entry(*row) for row in rows]

    def out_of_prompts(self, scope: RecallScope) -> frozenset[int]:
        """Return the rows of archived facts, without those that were used since."""
        rows = self._db.execute(_OUT_OF_PROMPTS, (self.scopes(scope),))
        return frozenset(row[0] for row in rows)

    def was_said_between(self, fact: Fact, after: int, until: int) -> bool:
        """Return whether a note was said again later than `after`, and not later than `until`."""
        return self._db.execute(_SAID_BETWEEN, (fact.id, after, until)).fetchone() is not None

    # -- parameters ---------------------------------------------------------------------------

    def _look_up_scopes(self, scope: RecallScope) -> list[int]:
        if scope.agent is not None and scope.user is not None and scope.workspace is not None:
            key = scope_key(scope.agent, scope.user, scope.workspace)
            return [row[0] for row in self._db.execute(_SCOPE, (key,))]
        parts = {"agent": scope.agent, "person": scope.user, "workspace": scope.workspace}
        given = {name: encode_text(part) for name, part in parts.items() if part is not None}
        where = " and ".join(f"{name} = %({name})s" for name in given) or "true"
        return [row[0] for row in self._db.execute(f"select id from scopes where {where}", given)]  # noqa: S608

    def _view_parameters(self, view: View) -> dict[str, Any]:
        about = encode_text(view.about)[:LONGEST_NAME]
        return {"scopes": self.scopes(view.scope), "about": about, "known_by": view.known_by}

    def _facts(self, query: str, scope: RecallScope, **given: Any) -> list[Fact]:
        limits = {"scopes": self.scopes(scope), "most": MAX_FACTS}
        return facts_of(self._db.execute(query, {**limits, **given}))


def _token(token: str) -> str:
    return encode_text(token)[:LONGEST_NAME]


def _former_entry(row: int, until: int, successor: str, *known: Any) -> FormerEntry:
    name, session, kind, at, content, event = known
    said = (name, decode_text(session), kind, "", at, decode_text(content))
    return FormerEntry(Fact(-row, None, INITIAL_TRUST, *said, "", "", event), until, successor)
