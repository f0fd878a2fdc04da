"""What is known of languages: which one a question is in, its stop words, and stems of words; pure.

The index knows no language (see `words`). A question is read in the language whose stop words it
uses, in all languages of its script if it uses none, and always in English too, whose words stand
in every other. Two words are forms of one if they share a stem in one of these languages.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Final

import Stemmer

from memorybus_providers.holographic.english import BASE_FORM, FORMS, STOP_WORDS
from memorybus_providers.holographic.words import folded, spelled

_STOP_WORDS: Final[Mapping[str, frozenset[str]]] = MappingProxyType({"english": STOP_WORDS})


def spoken(words: Iterable[str]) -> tuple[str, ...]:
    """Return the languages that words without diacritics are read in, the likeliest first."""
    found = Counter(
        language for word in words for language, stops in _STOP_WORDS.items() if word in stops
    )
    most = max(found.values(), default=0)
    return tuple(dict.fromkeys([*(name for name in found if found[name] == most), "english"]))


def is_stop_word(word: str, languages: Iterable[str]) -> bool:
    """Say whether a word without diacritics says nothing about what is asked for."""
    return any(word in _STOP_WORDS[language] for language in languages)


def stems_of(token: str, languages: Iterable[str]) -> frozenset[str]:
    """Return the stems of a token's word: one or two in each language, without diacritics.

    >>> sorted(stems_of("went", ["english"])), sorted(stems_of("researching", ["english"]))
    (['go'], ['research'])
    """
    return frozenset(stem for language in languages for stem in _stems(token, language))


def irregular_forms(kin: Iterable[str]) -> tuple[str, ...]:
    """Return the irregular English forms that have one of these stems."""
    known = _irregular()
    return tuple(form for stem in kin for form in known.get(stem, ()))


@cache
def _irregular() -> Mapping[str, tuple[str, ...]]:
    return {_stemmed(base, "english"): forms for base, forms in FORMS.items()}


@lru_cache(maxsize=1 << 16)
def _stems(token: str, language: str) -> tuple[str, ...]:
    plain, written = spelled(token)
    base = BASE_FORM.get(plain, plain) if language == "english" else plain
    if plain == written:
        return (_stemmed(base, language),)
    return (_stemmed(base, language), folded(_stemmed(written, language)))


def _stemmed(word: str, language: str) -> str:
    return str(_stemmer(language).stemWord(word))


@cache
def _stemmer(language: str) -> Stemmer.Stemmer:
    """Return a stemmer; it keeps the interpreter's lock, so that threads may share it."""
    return Stemmer.Stemmer(language, 0)  # what it returned is remembered above
