"""Searching the index: from a question to scored facts. It only reads, and takes no lock.

A recall costs a look at the vocabulary for each term, at most `query.MAX_MATCHES` matches, and the
re-ranking of at most `CANDIDATES` facts and their neighbours, however long the history. All of it
is read within the asker's own scope: nobody else's facts change an answer, or the time it takes.
"""

import heapq
import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from memorybus_providers.base import RecallScope
from memorybus_providers.holographic.finding.entities import Entities
from memorybus_providers.holographic.finding.lookup import FactLookup
from memorybus_providers.holographic.finding.rows import (
    FACT,
    LATEST,
    SCOPES,
    asked,
    fact_of,
    limits_of,
)
from memorybus_providers.holographic.finding.standing import Standings
from memorybus_providers.holographic.finding.vocabulary import Vocabulary
from memorybus_providers.language.query import Question, chosen, expression, parse
from memorybus_providers.language.words import folded
from memorybus_providers.ranking.evidence import NEAR
from memorybus_providers.ranking.facts import clean
from memorybus_providers.ranking.ranking import Corpus, Fact, Scored, ranked

CANDIDATES = 80
"""Facts that are re-ranked, beside the utterances around them (G10)."""

_REACH = max(NEAR)


_SPEAKERS = f"""
select name from entities where kind = 'speaker' and word = :about and scope in ({SCOPES})
"""  # noqa: S608
_ABOUT = f"""
select fact from fact_entities join entities on entities.id = entity
where entities.kind = 'named' and word = :about and scope in ({SCOPES})
"""  # noqa: S608
_WITHIN = f"""
facts.scope in ({SCOPES}) and facts.at <= :known_by and (
    :about = '' or facts.speaker = :about or facts.speaker in ({_SPEAKERS})
    or facts.id in ({_ABOUT})
)
"""
_SEARCH = """
select rowid from facts_fts where facts_fts match :match order by rowid desc
"""
# The full-text index leads (cross join): it is what narrows.
_SEARCH_NARROWED = f"""
select facts.id from facts_fts cross join facts on facts.id = facts_fts.rowid
where facts_fts match :match and {_WITHIN} order by facts_fts.rowid desc
"""  # noqa: S608  constants of our own
_AMONG = f"""
select id from facts where id in (select value from json_each(:near)) and {_WITHIN}
"""  # noqa: S608
_WITH_NEIGHBOURS = f"""
{FACT} where facts.id in (
    select value from json_each(:found)
    union
    select near.id from json_each(:found) join facts hit on hit.id = value
    join facts near on near.session = hit.session
        and near.seq between hit.seq - {_REACH} and hit.seq + {_REACH}
        and near.at <= :known_by
)
"""  # noqa: S608
_NAMES = f"""
select word from entities
where kind = 'speaker' and scope in ({SCOPES}) and word in (select value from json_each(:words))
"""  # noqa: S608


Limits = dict[str, str | int | None]
"""The parameters of the queries."""

Nearby = Callable[[str, RecallScope], Callable[[], Mapping[int, float]]]
"""Begins to look for the facts whose meaning is near a text's, and returns what waits for them: how
near each is, from 0 to 1, by its row."""


def nothing_near(text: str, scope: RecallScope) -> Callable[[], Mapping[int, float]]:
    """Compare words alone."""
    return dict


class FactSearch:
    """Answers questions from the database.

    Args:
        db: what it reads through.
        nearby: finds facts by their meaning.
    """

    def __init__(self, db: sqlite3.Connection, nearby: Nearby = nothing_near) -> None:
        """Read through `db`."""
        self._db = db
        self._vocabulary = Vocabulary(db)
        self._nearby = nearby
        self._entities = Entities(FactLookup(db))
        self._standings = Standings(db)

    def answer(
        self, text: str, scope: RecallScope, about: str = "", as_of: int | None = None
    ) -> list[Scored]:
        """Return the facts within `scope` that answer a question, best first.

        Any text is a question. It has no answer without a word that some fact holds, or a fact
        whose meaning is near.

        Args:
            text: the question.
            scope: whose facts.
            about: return only what this person said, and kept facts that name the person; empty
                for everything.
            as_of: what was known then, milliseconds; None for now. Trust is always today's.
        """
        text = self._entities.spelled_out(text, scope)
        waited_for = self._nearby(text, scope)
        question = parse(text)
        limits = _narrowed(scope, about, as_of)
        size, scopes = asked(self._db, limits)
        names = self._names(question, limits)
        known = self._vocabulary.known(question, question.without(names), scopes)
        question = msgspec.structs.replace(question, terms=tuple(one.term for one in known))
        corpus = Corpus(size, {one.term.stem: min(size, one.facts) for one in known})
        rows = self._by_words(question, corpus, scopes, limits)
        near = waited_for()
        hits, around = self._facts([*rows, *self._among(near, limits)], limits)
        if as_of is not None and not about:
            hits += self._standings.stood(question.terms, scope, as_of)
        found = ranked(question, hits, [] if about else around, corpus, names, near)
        return self._standings.settle(found, scope, as_of)

    def _names(self, question: Question, limits: Limits) -> frozenset[str]:
        rows = self._db.execute(_NAMES, {"words": json.dumps(question.words), **limits})
        return frozenset(row[0] for row in rows)

    def _by_words(
        self,
        question: Question,
        corpus: Corpus,
        scopes: Sequence[str],
        limits: Limits,
    ) -> list[int]:
        """Return the facts that hold most of what is asked for, the newest of equals first."""
        narrowed = limits["about"] or limits["known_by"] != LATEST
        search = _SEARCH_NARROWED if narrowed else _SEARCH
        worth: defaultdict[int, float] = defaultdict(float)
        for term in chosen(question.terms, corpus.found):
            rarity = corpus.rarity(term.stem)
            match = expression(term.forms, scopes)
            for (fact,) in self._db.execute(search, {"match": match, **limits}):
                worth[fact] += rarity
        return heapq.nsmallest(CANDIDATES, worth, key=lambda fact: (-worth[fact], -fact))

    def _among(self, near: Mapping[int, float], limits: Limits) -> list[int]:
        """Return those of the near facts that are in the scope now, and about whom is asked."""
        given = {"near": json.dumps(list(near)), **limits}
        return [row[0] for row in self._db.execute(_AMONG, given)] if near else []

    def _facts(self, found: Iterable[int], limits: Limits) -> tuple[list[Fact], list[Fact]]:
        """Return the facts of some rows, each once, and the utterances around them."""
        found = list(dict.fromkeys(found))
        rows = self._db.execute(_WITH_NEIGHBOURS, {"found": json.dumps(found), **limits})
        facts = {row[0]: fact_of(*row) for row in rows}
        # A fact may have been removed between the two reads.
        hits = [facts.pop(fact) for fact in found if fact in facts]
        return hits, list(facts.values())


def within(scored: Iterable[Scored], budget: int) -> Iterator[Scored]:
    """Choose whole facts, best first, until their texts fill `budget` characters.

    A text is given once. One that does not fit any more is left out for shorter ones after it;
    only the very best is given though it is longer than the budget, rather than nothing.
    """
    given: set[str] = set()
    left = budget
    for found in scored:
        text = found.fact.content
        if text in given or (given and len(text) > left):
            continue
        yield found
        given.add(text)
        left -= len(text)
        if left <= 0:
            return


def _narrowed(scope: RecallScope, about: str, as_of: int | None) -> Limits:
    """Return the scope, whom it is about, and until when, as the parameters of the queries."""
    known_by = LATEST if as_of is None else as_of
    return {**limits_of(scope), "about": clean(folded(about)), "known_by": known_by}
