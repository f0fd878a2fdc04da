"""The words that the facts of a scope are made of, and how many facts hold each.

They are read out of the full-text index, in which the tokens of one scope stand together in order:
a look at those that begin as a word does costs what that scope holds of them, and nothing else.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence

import msgspec

from memorybus_providers.holographic.languages import stems_of
from memorybus_providers.holographic.query import Question, Term
from memorybus_providers.holographic.words import MARK, spelled

MAX_TOKENS = 20_000
"""Tokens that are looked at for one question (G10)."""

_SHORTEST = 3
"""Characters that forms of a word begin with alike, at least; a shorter stem has no other forms."""

_AFTER_MARK = chr(ord(MARK) + 1)
_LAST = "\U0010ffff"

# Parts of the query lead (cross join), each a seek in the index.
_BETWEEN = f"""
select word.key, scope.value, substr(term, length(scope.value) + 1), doc
from json_each(:scopes) scope cross join json_each(:ranges) word cross join vocabulary
where term >= scope.value || json_extract(word.value, '$[0]')
    and term < scope.value || json_extract(word.value, '$[1]')
limit {MAX_TOKENS}
"""  # noqa: S608  a constant of our own

_Range = tuple[str, str]
"""The tokens from the first to below the second."""


class Known(msgspec.Struct, frozen=True):
    """What a vocabulary has of a term.

    Attributes:
        term: the term, with the forms that are there.
        facts: how many facts hold it; one that holds two of its forms counts twice.
    """

    term: Term
    facts: int


class Vocabulary:
    """Reads the index."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Read through `db`."""
        self._db = db

    def known(
        self, question: Question, terms: Sequence[Term], scopes: Sequence[str]
    ) -> list[Known]:
        """Return what some scopes have of each term.

        Args:
            question: the question.
            terms: those of its terms that are searched for.
            scopes: the scopes' prefixes (see `schema.prefix`).
        """
        asked = [(number, span) for number, term in enumerate(terms) for span in _ranges(term)]
        held: list[dict[tuple[str, str], int]] = [{} for _ in terms]
        for at, scope, token, facts in self._between([span for _, span in asked], scopes):
            number = asked[at][0]
            if _is_form(token, terms[number], question):
                held[number][scope, token] = facts
        return [_known(term, found) for term, found in zip(terms, held, strict=True)]

    def _between(
        self, ranges: Sequence[_Range], scopes: Sequence[str]
    ) -> Iterator[tuple[int, str, str, int]]:
        given = {"scopes": json.dumps(scopes), "ranges": json.dumps(ranges)}
        yield from self._db.execute(_BETWEEN, given)


def _known(term: Term, held: dict[tuple[str, str], int]) -> Known:
    forms = tuple(sorted({token for _, token in held}))
    return Known(msgspec.structs.replace(term, forms=forms), sum(held.values()))


def _is_form(token: str, term: Term, question: Question) -> bool:
    return token in term.forms or not term.kin.isdisjoint(stems_of(token, question.languages))


def _ranges(term: Term) -> list[_Range]:
    """Return where the forms of a term may stand; no two of them overlap."""
    begins = {kin[: max(_SHORTEST, len(kin) - 1)] for kin in term.kin if len(kin) >= _SHORTEST}
    widest = {
        one for one in begins if not any(one != two and one.startswith(two) for two in begins)
    }
    words = {spelled(form)[0] for form in term.forms}
    alone = {word for word in words if not word.startswith(tuple(widest))}
    return [(one, one + _LAST) for one in sorted(widest)] + [
        (word, word + _AFTER_MARK) for word in sorted(alone)
    ]
