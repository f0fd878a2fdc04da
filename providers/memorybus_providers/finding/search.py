"""Searches scored facts for a question; it only reads.

However long the history is, a recall looks up each term in the vocabulary, reads at most
`query.MAX_MATCHES` matches in each of the two pools (see `facts.SearchPool`), and ranks at most
`MAX_CANDIDATES` facts of talk, `MAX_ANSWERS` pieces of long answers, `MAX_SAID_THEN` more from a
time that the question names, and their neighbours. It reads only the asker's own scope, so the
facts of others change neither an answer nor the time that it takes.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from memorybus_providers.base import RecallScope
from memorybus_providers.finding.meaning_comparison import BeginComparison, begin_no_comparison
from memorybus_providers.finding.source import LATEST_STORABLE, FactSource, View
from memorybus_providers.finding.validity import FactValidity
from memorybus_providers.finding.vocabulary import Vocabulary
from memorybus_providers.language.query import Question, choose_terms, parse_question
from memorybus_providers.language.sentences import split_prompt
from memorybus_providers.language.times import Period
from memorybus_providers.language.words import folded, folded_words, without_words
from memorybus_providers.ranking.evidence import NEAR_WEIGHTS
from memorybus_providers.ranking.excerpt import excerpt
from memorybus_providers.ranking.facts import CONCLUSION, SearchPool, clean, pool_of
from memorybus_providers.ranking.nearness import Near
from memorybus_providers.ranking.ranking import Corpus, Fact, Scored, rank_facts
from memorybus_providers.ranking.restating import (
    Tells,
    lowered,
    restated,
    without_restatements,
)
from memorybus_providers.ranking.said_within import in_turn, order_by_time, parts_of_time
from memorybus_providers.ranking.shares import merge, share_of_answers

MAX_CANDIDATES = 80
"""The most facts of talk that are ranked, in addition to the utterances around them (G10)."""

MAX_ANSWERS = 30  # the most pieces of long answers that are ranked; a block shows few of them (G10)

MAX_SAID_THEN = 40
"""The most further facts that are ranked because they were said at the time asked for (G10)."""

_REACH = max(NEAR_WEIGHTS)

_ROUNDING_FACTOR = 1 + 1e-9
"""A factor that is larger than any rounding error of the sums of rarities."""


_POOLS: Final[tuple[SearchPool, SearchPool]] = ("talk", "answers")


class _WordSearch(NamedTuple):
    """What the words of a question found in one pool."""

    pool: SearchPool
    question: Question
    corpus: Corpus
    rows: list[int]


class FactSearch:
    """Answers questions from a store.

    Args:
        begin_comparison: begins to compare facts with a text by their meaning.
    """

    def __init__(
        self, source: FactSource, begin_comparison: BeginComparison = begin_no_comparison
    ) -> None:
        self.source = source  # reads the facts
        self._vocabulary = Vocabulary(source)
        self._begin_comparison = begin_comparison
        self._validity = FactValidity(source)

    def answer(
        self,
        text: str,
        scope: RecallScope,
        about: str = "",
        as_of: int | None = None,
        *,
        now: int,
        zone: tzinfo = UTC,
        for_prompt: bool = False,
    ) -> list[Scored]:
        """Return the facts within `scope` that answer a question, best first.

        Any text can be a question. It has an answer only if some fact contains one of its words or
        is near in meaning, or if it names a time at which something was said.

        Args:
            about: return only what this person said, and kept facts that name the person; empty
                for everything.
            as_of: only what was known at this time, milliseconds; None for now. Trust is always
                today's.
            now: when it is asked, milliseconds; with `as_of` that time is used.
            zone: the time zone in which days begin.
            for_prompt: whether archived facts are left out, and conclusions that only restate
                what was found.
        """
        asked, aside = split_prompt(text)
        question = parse_question(asked, aside, now if as_of is None else as_of, zone)
        names = self.source.speakers(question.words, scope)
        known_by = LATEST_STORABLE if as_of is None else as_of
        left_out = self.source.out_of_prompts(scope) if for_prompt else frozenset[int]()
        view = View(scope, clean(folded(about)), known_by, left_out)
        if question.names_only_a_time(names):
            told = self._said_within(question, names, view)
            told = [*self._speaking_of(question, told, view), *told]
            if told or not (question.months or question.years):
                if for_prompt:
                    return self._without_restatements(told, view, lambda _, missing: not missing)
                return self._validity.settle(told, scope, as_of)
            # Nothing was said at that time, but a fact may speak of it.
            question = parse_question(asked, aside)
        meant = without_words(text, names)
        talk, answers = self._find(question, meant, names, view, for_prompt=for_prompt)
        found = merge(talk, answers, share_of_answers(asked))
        return self._validity.settle(found, scope, as_of)

    def _without_restatements(
        self, found: Sequence[Scored], view: View, tell: Tells
    ) -> list[Scored]:
        """Return what holds of what was found, without conclusions that only restate it."""
        as_of = None if view.known_by == LATEST_STORABLE else view.known_by
        rows = [one.fact.id for one in found if one.fact.kind == CONCLUSION]
        if not rows:
            return self._validity.settle(found, view.scope, as_of)
        told = restated(found, self.source.sources_of(rows, view.scope), tell)
        settled = self._validity.settle(lowered(found, told), view.scope, as_of)
        return without_restatements(settled, told)

    def _said_within(self, question: Question, names: frozenset[str], view: View) -> list[Scored]:
        parts = parts_of_time(question.periods)
        rows = self._rows_by_time(parts, MAX_CANDIDATES, view)
        read = self.source.facts_with_neighbours(rows, 0, view) if rows else ()
        return order_by_time(list(read), parts, names, question)

    def _speaking_of(
        self, question: Question, told: Sequence[Scored], view: View
    ) -> Iterator[Scored]:
        """Yield further facts that contain the date that a question names."""
        if not question.dates:
            return
        known = {one.fact.id for one in told}
        talk, _ = self._find(question, "", frozenset(), view)
        for one in talk:
            words = set(folded_words(one.fact.content))
            if one.fact.id not in known and question.dates <= words:
                yield msgspec.structs.replace(one, score=1.0, fit=1.0)

    def _find(
        self,
        question: Question,
        meant: str,
        names: frozenset[str],
        view: View,
        *,
        for_prompt: bool = False,
    ) -> list[list[Scored]]:
        """Return talk and answers found by words, by time, and by the meaning of `meant`.

        Conclusions stand with the talk, by their scores; they change no other fact's score.
        """
        wait_for_comparison = self._begin_comparison(meant, view.scope)
        question = question.without_asking_terms()
        searches = [self._search_words(question, names, view, pool) for pool in _POOLS]
        rows = [row for search in searches for row in search.rows]
        if question.periods and rows:
            rows += self._rows_by_time(parts_of_time(question.periods), MAX_SAID_THEN, view)
        comparison = wait_for_comparison()
        # By itself, since long answers are so many that they would leave no place for talk.
        pools = [search.pool for search in searches if search.corpus.size]
        nearest = [row for pool in pools for row in comparison.nearest(pool)]
        visible = self.source.visible_rows(nearest, view) if nearest else []
        rows += [row for row in visible if row not in view.left_out]
        hits, around = self._read_facts(rows, view)
        near = comparison.nearness([fact.id for fact in (*hits, *around)])
        if view.known_by != LATEST_STORABLE and not view.about:
            hits += self._validity.entries_as_of(question.terms, view.scope, view.known_by)
        answered = _answered((*hits, *around))
        around = [] if view.about else around
        concluded = [fact for fact in hits if fact.kind == CONCLUSION]
        hits = [fact for fact in hits if fact.kind != CONCLUSION] if concluded else hits
        talk, answers = (_rank(search, hits, around, names, near, answered) for search in searches)
        if concluded:
            words = _without_guesses(searches[1].question, question, searches[0].corpus)
            corpus = searches[0].corpus.beside(searches[1].corpus)
            ranked = rank_facts(words, concluded, (), corpus, names, near)
            talk = sorted([*talk, *ranked], key=lambda one: -one.score)
            if for_prompt:
                teller = _teller(searches[0], hits, talk)
                talk = self._without_restatements(talk, view, teller)
        return [talk, answers]

    def _search_words(
        self, question: Question, names: frozenset[str], view: View, pool: SearchPool
    ) -> _WordSearch:
        extent = self.source.extent(view.scope, pool)
        known = self._vocabulary.look_up(question, question.terms_without(names), extent.scopes)
        question = msgspec.structs.replace(question, terms=tuple(one.term for one in known))
        found = {one.term.stem: min(extent.facts, one.facts) for one in known}
        named = frozenset(
            term.stem
            for term in question.terms
            if term.word in question.names or (term.word in question.mine and found[term.stem])
        )
        weights = {term.stem: term.weight for term in question.terms if term.weight < 1}
        corpus = Corpus(extent.facts, found, named, weights)
        most = MAX_CANDIDATES if pool == "talk" else MAX_ANSWERS
        rows = self._rows_by_words(question, corpus, extent.scopes, view, most)
        return _WordSearch(pool, question, corpus, rows)

    def _rows_by_time(self, parts: Sequence[Period], most: int, view: View) -> list[int]:
        """Return at most `most` of the newest facts from parts of a time, some of each part."""
        rows = in_turn(self.source.rows_said_within(parts, most, view))
        return list(islice((row for row in rows if row not in view.left_out), most))

    def _rows_by_words(
        self, question: Question, corpus: Corpus, scopes: Sequence[str], view: View, most: int
    ) -> list[int]:
        """Return the `most` facts that contain most of what is asked for; of equals the newest."""
        terms = choose_terms(question.terms, corpus.found)
        rarities = [corpus.rarity(term.stem) for term in terms]
        found = self.source.matching_rows([term.forms for term in terms], scopes, view)
        if view.left_out:
            found = ([*{*rows} - view.left_out] for rows in found)
        return most_worth(zip(rarities, found, strict=True), sum(rarities), most)

    def _read_facts(self, found: Iterable[int], view: View) -> tuple[list[Fact], list[Fact]]:
        """Return the facts of some rows, each once, and the utterances around them."""
        found = list(dict.fromkeys(found))
        read = self.source.facts_with_neighbours(found, _REACH, view) if found else ()
        facts = {fact.id: fact for fact in read}
        # A fact may have been removed between the two reads.
        hits = [facts.pop(fact) for fact in found if fact in facts]
        return hits, list(facts.values())


def _rank(
    search: _WordSearch,
    hits: Iterable[Fact],
    around: Iterable[Fact],
    names: frozenset[str],
    near: Mapping[int, Near],
    answered: Collection[int],
) -> list[Scored]:
    """Return the facts of a search's pool, best first; see `rank_facts`."""
    found, beside = _of_pool(hits, search.pool), _of_pool(around, search.pool)
    return rank_facts(search.question, found, beside, search.corpus, names, near, answered)


def _without_guesses(read: Question, asked: Question, corpus: Corpus) -> Question:
    """Return a question without the forms of other words that a term known in the talk may mean."""
    terms = {term.stem: msgspec.structs.replace(asked, terms=(term,)) for term in asked.terms}
    kept = (
        msgspec.structs.replace(term, forms=tuple(filter(terms[term.stem].asks_for, term.forms)))
        if corpus.found.get(term.stem)
        else term
        for term in read.terms
    )
    return msgspec.structs.replace(read, terms=tuple(kept))


def _teller(search: _WordSearch, hits: Sequence[Fact], found: Sequence[Scored]) -> Tells:
    """Return whether events tell something: in a hit, or in a text too common to be among them."""
    rows = set(search.rows)
    rarities = [sum(map(search.corpus.rarity, one.terms)) for one in found if one.fact.id in rows]
    least = min(rarities, default=0.0) if len(rows) == MAX_CANDIDATES else 0.0

    def tell(events: Collection[str], missing: Collection[str]) -> bool:
        texts = search.question.read_texts(one.content for one in hits if one.event in events)
        left = set(missing).difference(*texts)
        return sum(map(search.corpus.rarity, left)) <= least

    return tell


def _answered(facts: Sequence[Fact]) -> frozenset[int]:
    """Return the rows of the facts after which something was said."""
    places = {fact.place for fact in facts}
    return frozenset(
        fact.id for fact in facts if fact.place and (fact.place[0], fact.place[1] + 1) in places
    )


def _of_pool(facts: Iterable[Fact], pool: SearchPool) -> list[Fact]:
    return [fact for fact in facts if pool_of(fact.kind) == pool]


def most_worth(found: Iterable[tuple[float, Sequence[int]]], left: float, most: int) -> list[int]:
    """Return the `most` rows of the largest sums, the largest row first among equals.

    Args:
        found: amounts, and the rows to which each is added.
        left: the sum of all amounts.
        most: how many rows to return.
    """
    sums: dict[int, float] = {}
    for amount, rows in found:
        # Then no new row can reach the chosen ones any more.
        if _least_chosen(sums, most) > left * _ROUNDING_FACTOR:
            for row in sums.keys() & rows:
                sums[row] += amount
        else:
            for row in rows:
                sums[row] = sums.get(row, 0.0) + amount
        left -= amount
    best = heapq.nlargest(most, zip(sums.values(), sums.keys(), strict=True))
    return [row for _, row in best]


def _least_chosen(sums: Mapping[int, float], most: int) -> float:
    """Return the smallest sum that would be chosen now; 0 if all would be."""
    if len(sums) < most:
        return 0.0
    return heapq.nlargest(most, sums.values())[-1]


def fit_budget(
    scored: Iterable[Scored], budget: int, query: str = ""
) -> Iterator[tuple[Scored, str]]:
    """Choose facts, best first, with the texts that fill `budget` characters.

    Each text is given once. One that does not fit and is longer than half of the budget is cut to
    half (see `excerpt`). Any other that does not fit is left out for shorter ones after it; the
    room that is left at the end shows the beginning of the first of these.
    """
    question = parse_question(*split_prompt(query))
    left_out: list[Scored] = []
    given: set[str] = set()
    left = budget
    for found in scored:
        content = found.fact.content
        if content in given:
            continue
        if text := _fitting(content, left, budget // 2, question):
            yield found, text
            given.add(content)
            left -= len(text)
        else:
            left_out.append(found)
    for found in left_out[:1]:
        if text := excerpt(found.fact.content, left, question):
            yield found, text


def _fitting(content: str, left: int, half: int, question: Question) -> str:
    """Return a text that fits into `left`, of a long one half the budget; "" if it does not fit."""
    if len(content) <= left:
        return content
    return excerpt(content, min(left, half), question) if len(content) > half else ""
