"""Reads the words of the facts of a scope, and how many facts contain each.

They come from the store's index, in which the tokens of one scope are sorted. So reading the tokens
that begin like a word costs only as much as that scope has of them.
"""

from collections.abc import Callable, Sequence

import msgspec

from memorybus_providers.finding.source import FactSource
from memorybus_providers.language.languages import form_stems, is_stop_word, stems_of
from memorybus_providers.language.query import Question, Term
from memorybus_providers.language.unknown_words import (
    LAST_CHARACTER,
    MAX_UNKNOWN,
    TokenSpan,
    is_near,
    may_mean_another,
    spans_near,
)
from memorybus_providers.language.words import MARK, split_token

MAX_TOKENS = 20_000  # the most tokens that are read for one question (G10)

_MIN_SHARED_CHARS = 3
"""Forms of a word share at least this many first characters; a shorter stem has no other forms."""

_AFTER_MARK = chr(ord(MARK) + 1)

_TokenCounts = dict[tuple[str, str], int]  # how many facts contain a token, by scope and token


class KnownTerm(msgspec.Struct, frozen=True):
    """What a vocabulary knows of a term."""

    term: Term  # the term, with the forms that occur
    facts: int  # how many facts contain it; a fact with two of its forms counts twice


class Vocabulary:
    """Reads the index."""

    def __init__(self, source: FactSource) -> None:
        self._source = source

    def look_up(
        self, question: Question, terms: Sequence[Term], scopes: Sequence[str]
    ) -> list[KnownTerm]:
        """Return what is known of each term in some scopes; `Term.extra` says what is left out.

        Args:
            terms: those of its terms that are searched for.
            scopes: the store's ids of the scopes (see `Extent`).
        """
        counts = self._read_tokens(
            [_token_ranges(term) for term in terms],
            scopes,
            lambda number, token: _is_form(token, terms[number], question.languages),
        )
        unknown = [n for n, found in enumerate(counts) if not found and may_mean_another(terms[n])]
        for number, near in zip(unknown, self._near_words(terms, unknown, scopes), strict=False):
            counts[number] = near
        return _drop_uninformative(
            [_known_term(term, found) for term, found in zip(terms, counts, strict=True)]
        )

    def _near_words(
        self, terms: Sequence[Term], unknown: Sequence[int], scopes: Sequence[str]
    ) -> list[_TokenCounts]:
        """Return the words that may be meant by terms that no fact contains."""
        words = [terms[number].forms[0] for number in unknown[:MAX_UNKNOWN]]
        return self._read_tokens(
            [spans_near(word) for word in words],
            scopes,
            lambda number, token: _may_be_meant(words[number], split_token(token)[0]),
        )

    def _read_tokens(
        self,
        spans: Sequence[Sequence[TokenSpan]],
        scopes: Sequence[str],
        fits: Callable[[int, str], bool],
    ) -> list[_TokenCounts]:
        """Return the tokens of scopes within some spans that fit, by the span's number."""
        asked = [(number, span) for number, some in enumerate(spans) for span in some]
        counts: list[_TokenCounts] = [{} for _ in spans]
        if asked:
            found = self._source.tokens([span for _, span in asked], scopes, MAX_TOKENS)
            for at, scope, token, facts in found:
                number = asked[at][0]
                if fits(number, token):
                    counts[number][scope, token] = facts
        return counts


def _known_term(term: Term, counts: _TokenCounts) -> KnownTerm:
    forms = tuple(sorted({token for _, token in counts}))
    return KnownTerm(msgspec.structs.replace(term, forms=forms), sum(counts.values()))


def _drop_uninformative(terms: Sequence[KnownTerm]) -> list[KnownTerm]:
    """Leave out unknown terms that only add to others, or whose word is known in another way."""
    met = {term.term.word for term in terms if term.facts}
    return [term for term in terms if term.facts or not (term.term.extra or term.term.word in met)]


def _is_form(token: str, term: Term, languages: Sequence[str]) -> bool:
    if token in term.forms or split_token(token)[0] in term.forms:
        return True
    if token.startswith(MARK):
        return not term.kin.isdisjoint(MARK + stem for stem in stems_of(token[1:], languages))
    return not term.kin.isdisjoint(form_stems(token, languages))


def _may_be_meant(token: str, other: str) -> bool:
    return is_near(token, other) and not is_stop_word(other)


def _token_ranges(term: Term) -> list[TokenSpan]:
    """Return where the forms of a term may stand; no two of them overlap."""
    begins = {
        kin[: max(_MIN_SHARED_CHARS, len(kin) - 1)]
        for kin in term.kin
        if len(kin) >= _MIN_SHARED_CHARS
    }
    widest = {
        one for one in begins if not any(one != two and one.startswith(two) for two in begins)
    }
    words = {split_token(form)[0] or form for form in term.forms}
    alone = {word for word in words if not word.startswith(tuple(widest))}
    return [(one, one + LAST_CHARACTER) for one in sorted(widest)] + [
        (word, word + _AFTER_MARK) for word in sorted(alone)
    ]
