"""Reading a question: the words, names and times that are searched for; pure.

A question never reaches the full-text engine raw: it is cut into tokens (see `words`), and only
tokens, each in quotes, stand in the expression. Operators and quotes in a question are therefore
harmless.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from memorybus_providers.holographic.english import MONTHS, SILENT
from memorybus_providers.holographic.languages import (
    irregular_forms,
    is_stop_word,
    spoken,
    stems_of,
)
from memorybus_providers.holographic.words import MARK, asked, identifiers, spelled, tokens

MAX_WORDS = 64
"""Words of a question that are looked at (G10)."""

MAX_TERMS = 24
"""Terms a search is made of, the rarest ones (G10)."""

MAX_MATCHES = 20_000
"""Rows a search may touch: common terms beyond it only count in re-ranking (G10)."""

_MONTH_MAY = re.compile(r"(?<!^)\bMay\b")
_YEAR = re.compile(r"(?:19|20)\d\d")


class Term(msgspec.Struct, frozen=True):
    """One thing asked for.

    Attributes:
        stem: what it is known by.
        forms: the tokens that stand for it in the index: those a reading knows, and after
            `Vocabulary.known` those that are there.
        kin: the stems of its forms; empty if it has only the forms that it names.
    """

    stem: str
    forms: tuple[str, ...]
    kin: frozenset[str] = frozenset()


class Question(msgspec.Struct, frozen=True):
    """What a question says.

    Attributes:
        words: its words, folded, in order, each once.
        terms: those that carry meaning.
        months: months named, 1 to 12.
        years: years named.
        languages: in which its words are stemmed (see `languages`).
    """

    words: tuple[str, ...]
    terms: tuple[Term, ...]
    months: frozenset[int]
    years: frozenset[int]
    languages: tuple[str, ...] = ("english",)

    def without(self, names: frozenset[str]) -> tuple[Term, ...]:
        """Return the terms that are not names of speakers; all of them if nothing else is left.

        A speaker's own utterances rarely say their name, the other side's do: as a search term
        it finds the wrong ones.
        """
        kept = tuple(term for term in self.terms if spelled(term.forms[0])[0] not in names)
        return kept or self.terms

    def read(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """Yield the tokens of each text; where a token is a form of a term, the term's stem."""
        known = {form: term.stem for term in self.terms for form in term.forms}
        for text in texts:
            yield [known.get(token, token) for token in tokens(text)]

    def asks_for(self, word: str) -> bool:
        """Say whether a word, as somebody wrote it, is a form of one of the terms."""
        held = tokens(word)
        return any(
            not term.kin.isdisjoint(stems_of(token, self.languages)) or token in term.forms
            for token in held
            for term in self.terms
        )


def parse(text: str) -> Question:
    """Read a question; any text is one."""
    said = tuple(dict.fromkeys((*asked(text), *identifiers(text))))[:MAX_WORDS]
    words = tuple(dict.fromkeys(spelled(token)[0] for token in said))
    languages = spoken(words)
    terms = {term.stem: term for token in said for term in _terms(token, languages)}
    months = {MONTHS[word] for word in words if word in MONTHS and word != "may"}
    if _MONTH_MAY.search(text):
        months.add(MONTHS["may"])
    years = {int(word) for word in words if _YEAR.fullmatch(word)}
    return Question(words, tuple(terms.values()), frozenset(months), frozenset(years), languages)


def stems(text: str) -> list[str]:
    """Return the English stems of all words of a text, in order."""
    return [min(stems_of(token, ("english",))) for token in tokens(text)]


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


def expression(tokens: Iterable[str], scopes: Iterable[str]) -> str:
    """Return the full-text expression that finds any of the tokens in any of the scopes.

    Args:
        tokens: tokens (see `words`).
        scopes: what stands before the tokens of each scope (see `schema.prefix`).
    """
    held = tuple(tokens)
    return " OR ".join(f'"{scope}{token}"' for scope in scopes for token in held)


def holding(phrases: Iterable[str], scopes: Sequence[str]) -> str:
    """Return the full-text expression that finds all words of any of the phrases, in any order.

    English stop words are left out, as in the index.

    Args:
        phrases: folded words, parted by spaces.
        scopes: see `expression`.
    """
    words = [[token for token in tokens(phrase) if token not in SILENT] for phrase in phrases]
    return " OR ".join(
        f"({' AND '.join(_spelled_anyhow(scope + word) for word in phrase)})"
        for scope in scopes
        for phrase in words
        if phrase
    )


def _spelled_anyhow(word: str) -> str:
    return f'("{word}" OR "{word}{MARK}"*)'


def _terms(token: str, languages: Sequence[str]) -> Iterator[Term]:
    plain, _ = spelled(token)
    if not is_stop_word(plain, languages):
        kin = stems_of(token, languages)
        forms = tuple(dict.fromkeys((token, *irregular_forms(kin))))
        yield Term(min(stems_of(token, languages[:1])), forms, kin)
