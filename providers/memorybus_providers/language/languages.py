"""Finds the language of a question, its stop words, and the stems of words; pure.

The index knows no language (see `words`). A question is read in the language whose stop words it
uses, or in all languages of its script if it uses none, and always in English too, since English
words occur in all others. Two words are forms of one word if they have a common stem in one of
these languages, and neither is a stop word there. In scripts other than Latin, the script itself
shows the possible languages; if Snowball has no stemmer for them, words that begin with the same
letters are forms of one word.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Final

import Stemmer

from memorybus_providers.language import stop_words
from memorybus_providers.language.english import BASE_FORM, FORMS, STOP_WORDS
from memorybus_providers.language.words import folded, split_token

LATIN: Final = (
    "english", "german", "french", "spanish", "italian", "portuguese", "dutch", "swedish", "danish",
    "norwegian", "finnish", "hungarian", "romanian", "turkish", "polish", "czech", "indonesian",
    "catalan", "estonian", "lithuanian",
)  # fmt: skip
"""The languages of the Latin script in which a question without stop words is read."""

COMPOUNDING: Final = frozenset(
    {"german", "dutch", "swedish", "danish", "norwegian", "finnish", "hungarian", "estonian"}
)
"""Languages that join several words into one."""

_SCRIPTS: Final = (
    (re.compile("[\u0370-\u03ff]"), ("greek",)),
    (re.compile("[\u0400-\u052f]"), ("russian",)),
    (re.compile("[\u0531-\u058f]"), ("armenian",)),
    (re.compile("[\u0600-\u06ff]"), ("arabic", "persian")),
    (re.compile("[\u0900-\u097f]"), ("hindi",)),
    (re.compile("[\u0b80-\u0bff]"), ("tamil",)),
    (re.compile("[^\x00-\u024f\u1e00-\u1eff]"), ()),
)
"""Scripts other than Latin, and the languages whose stemmers are used for them."""

_SHARED_LETTERS = 5  # forms of a word share this many first letters, if there is no stemmer

_ENGLISH_TOO: Final = frozenset(
    {
        "ale", "also", "ate", "bent", "bin", "care", "cat", "come", "con", "dame", "den",
        "des", "die", "dig", "dine", "dog", "door", "dove", "end", "era", "face", "fur",
        "god", "hat", "hay", "hem", "inn", "kit", "man", "men", "met", "mine", "mint", "mod",
        "nun", "par", "pod", "pour", "quest", "sale", "sea", "sedan", "sin", "son",
        "sue", "sur", "take", "ten", "vain", "van", "vast", "war",
    }
)  # fmt: skip
"""Stop words of other languages that mean something in English."""

_RATHER_FOREIGN: Final = frozenset({"con", "den", "des", "die", "pour", "sur"})
"""Those of these words that are frequent in other languages, and rare in English."""

_STOP_WORDS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {"english": STOP_WORDS, **stop_words.BY_LANGUAGE}
)
_SPEAKS_FOR: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        word: tuple(
            language
            for language, stops in _STOP_WORDS.items()
            if word in stops or (language == "english" and word in _ENGLISH_TOO)
        )
        for word in frozenset().union(*_STOP_WORDS.values())
    }
)
"""Each stop word, and the languages that it indicates. A word that means something in English
indicates English as well."""


def likely_languages(words: Iterable[str]) -> tuple[str, ...]:
    """Return the languages in which words without diacritics are read, the likeliest first."""
    found = Counter(language for word in words for language in _SPEAKS_FOR.get(word, ()))
    most = max(found.values(), default=0)
    likely = [language for language in found if found[language] == most]
    return tuple(dict.fromkeys([*likely, "english"])) if likely else LATIN


def stop_words_among(words: Sequence[str], languages: Sequence[str]) -> frozenset[str]:
    """Return the words that say nothing about what is asked for.

    A stop word that is an English word, too, counts only if another one is certainly foreign, or
    another language is likelier than English: "sedan" is Swedish, or a car.
    """
    found = {
        word
        for word in words
        if any(word in _STOP_WORDS.get(language, ()) for language in languages)
    }
    foreign = found - _ENGLISH_TOO - _STOP_WORDS["english"]
    if not foreign and languages[0] == "english":
        found -= _ENGLISH_TOO - _STOP_WORDS["english"]
    return frozenset(found)


def is_stop_word(word: str) -> bool:
    """Return whether a word without diacritics is a stop word of any language."""
    return word in _SPEAKS_FOR


def form_stems(token: str, languages: Iterable[str]) -> frozenset[str]:
    """Return the stems by which a token may be another form of a word that was asked for.

    It has none in a language in which it is a stop word: "die" is then an article, and not a form
    of "died".
    """
    word = split_token(token)[0]
    if word not in _SPEAKS_FOR:
        return stems_of(token, languages)
    if word in _RATHER_FOREIGN:
        return frozenset()
    return stems_of(
        token, [language for language in languages if word not in _STOP_WORDS.get(language, ())]
    )


def stems_of(token: str, languages: Iterable[str]) -> frozenset[str]:
    """Return the stems of a token's word: one or two in each language, without diacritics.

    >>> sorted(stems_of("went", ["english"])), sorted(stems_of("researching", ["english"]))
    (['go'], ['research'])
    """
    of_script = _languages_of_script(token)
    if of_script is None:
        known = [language for language in languages if language in _stemmer_languages()]
        return frozenset(stem for language in known for stem in _stems(token, language))
    alike = {split_token(token)[0][:_SHARED_LETTERS]} if not of_script else set()
    return frozenset(alike.union(*(_stems(token, language) for language in of_script)))


def _languages_of_script(token: str) -> tuple[str, ...] | None:
    """Return the languages of a word's script; None if it is the Latin one."""
    if token.isascii():
        return None
    return next((languages for script, languages in _SCRIPTS if script.match(token)), None)


@cache
def _stemmer_languages() -> frozenset[str]:
    return frozenset(Stemmer.algorithms())


def irregular_forms(kin: Iterable[str]) -> tuple[str, ...]:
    """Return the English forms and short names that no stemmer knows, of words with these stems."""
    known = _irregular()
    return tuple(form for stem in kin for form in known.get(stem, ()))


@cache
def _irregular() -> Mapping[str, tuple[str, ...]]:
    return {_stem(base, "english"): forms for base, forms in FORMS.items()}


@lru_cache(maxsize=1 << 16)
def _stems(token: str, language: str) -> tuple[str, ...]:
    plain, written = split_token(token)
    base = BASE_FORM.get(plain, plain) if language == "english" else plain
    if plain == written:
        return (_stem(base, language),)
    return (_stem(base, language), folded(_stem(written, language)))


def _stem(word: str, language: str) -> str:
    return str(_stemmer(language).stemWord(word))


@cache
def _stemmer(language: str) -> Stemmer.Stemmer:
    """Return a stemmer; it does not release the interpreter's lock, so threads may share it."""
    return Stemmer.Stemmer(language, 0)  # without a cache, since `_stems` has one
