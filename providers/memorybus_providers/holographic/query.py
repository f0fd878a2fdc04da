"""Reading a question: the words, names and times that are searched for; pure.

A question never reaches the full-text engine raw: it is cut into words, and only words, each in
quotes, stand in the expression. Operators and quotes in a question are therefore harmless.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from memorybus_providers.holographic.english import BASE_FORM, FORMS, MONTHS, STOP_WORDS, stem

MAX_WORDS = 64
"""Words of a question that are looked at (G10)."""

MAX_TERMS = 24
"""Terms a search is made of, the rarest ones (G10)."""

MAX_MATCHES = 50_000
"""Rows the ranked search may touch: common terms beyond it only count in re-ranking (G10)."""

_WORD = re.compile(r"[^\W_]{1,64}")
_MONTH_MAY = re.compile(r"(?<!^)\bMay\b")
_YEAR = re.compile(r"(?:19|20)\d\d")


class Term(msgspec.Struct, frozen=True):
    """One thing asked for: its stem, and the forms the index may hold it in."""

    stem: str
    forms: tuple[str, ...]

    @property
    def expression(self) -> str:
        """The term as a full-text expression."""
        return " OR ".join(f'"{form}"' for form in self.forms)


class Question(msgspec.Struct, frozen=True):
    """What a question says.

    Attributes:
        words: its words, folded, in order, each once.
        terms: those that carry meaning.
        months: months named, 1 to 12.
        years: years named.
    """

    words: tuple[str, ...]
    terms: tuple[Term, ...]
    months: frozenset[int]
    years: frozenset[int]

    def without(self, names: frozenset[str]) -> tuple[Term, ...]:
        """Return the terms that are not names of speakers; all of them if nothing else is left.

        A speaker's own utterances rarely say their name, the other side's do: as a search term
        it finds the wrong ones.
        """
        kept = tuple(term for term in self.terms if term.forms[0] not in names)
        return kept or self.terms


def parse(text: str) -> Question:
    """Read a question; any text is one."""
    words = tuple(dict.fromkeys(_words(text)))[:MAX_WORDS]
    terms = {stem(word): _term(word) for word in words if word not in STOP_WORDS}
    months = {MONTHS[word] for word in words if word in MONTHS and word != "may"}
    if _MONTH_MAY.search(text):
        months.add(MONTHS["may"])
    years = {int(word) for word in words if _YEAR.fullmatch(word)}
    return Question(words, tuple(terms.values()), frozenset(months), frozenset(years))


def stems(text: str) -> list[str]:
    """Return the stems of all words of a text, in order."""
    return [stem(word) for word in _words(text)]


def chosen(terms: Sequence[Term], found: Mapping[str, int]) -> list[Term]:
    """Return the terms to search by: rarest first, within the declared bounds.

    Args:
        terms: the question's terms.
        found: how many facts hold each, by stem.
    """
    rarest = sorted((t for t in terms if found[t.stem]), key=lambda t: found[t.stem])[:MAX_TERMS]
    taken: list[Term] = []
    rows = 0
    for term in rarest:
        rows += found[term.stem]
        if taken and rows > MAX_MATCHES:
            break
        taken.append(term)
    return taken


def expression(terms: Iterable[Term]) -> str:
    """Return the full-text expression that finds any of the terms."""
    return " OR ".join(term.expression for term in terms)


def _term(word: str) -> Term:
    base = BASE_FORM.get(word, word)
    return Term(stem(word), tuple(dict.fromkeys((word, *FORMS.get(base, ())))))


def _words(text: str) -> list[str]:
    return _WORD.findall(folded(text))


def folded(text: str) -> str:
    """Return a text in lower case without diacritics, as the full-text index folds it."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFD", text.lower())
    return "".join(part for part in parts if not unicodedata.combining(part))
