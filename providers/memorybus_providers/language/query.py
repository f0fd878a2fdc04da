"""Reads a question: the words, names and times that are searched for; pure.

The full-text engine never gets a question itself: the question is cut into tokens (see `words`),
and the expression contains only tokens, each in quotes. Operators and quotes in a question are
therefore harmless.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo

import msgspec

from memorybus_providers.language.asking_words import is_asking_word
from memorybus_providers.language.english import MONTHS, NAMES_IN_CAPITALS, SILENT, STOP_WORDS
from memorybus_providers.language.languages import (
    COMPOUNDING,
    irregular_forms,
    likely_languages,
    stems_of,
    stop_words_among,
)
from memorybus_providers.language.sentences import requests_of
from memorybus_providers.language.stop_words import BY_LANGUAGE, OF_RUNS
from memorybus_providers.language.time_words import (
    ACTIVITIES,
    MONTH_NUMBERS,
    WEEKDAY_NUMBERS,
)
from memorybus_providers.language.times import NamedTimes, Period, read_times
from memorybus_providers.language.words import (
    MARK,
    MIN_PART,
    WritingSystem,
    folded,
    identifiers,
    in_capitals,
    is_han,
    pairs,
    parts_of,
    script_of,
    split_token,
    tokens,
    triples,
    whole_words,
)

MAX_WORDS = 64  # the most words of a question that are read (G10)

MAX_TERMS = 24  # the most terms of a search, the rarest ones (G10)

MAX_MATCHES = 20_000
"""The most rows that a search may read: further common terms only count in ranking (G10)."""

_MONTH_MAY = re.compile(r"(?<!^)\bMay\b")
_NAMED_LIKE_A_VERB = re.compile(r"(?<=[a-z,] )(?:Don|May|Will)\b(?! (?:the )?\d)")
_ORDINAL = re.compile(r"(\d)(?:st|nd|rd|th)\b")
_RUN_STOP_WORDS = re.compile(f"(?:{'|'.join(OF_RUNS)}|(?<=[^ぁ-ゟ])[はがにでとのもかへや])+")
_KOREAN_ENDING = re.compile(
    "(?<=.)(?:(?:했|하였)(?:어요|습니다|었어요|다|어|니|나요)|합니다|하니|하나요|하는|하고|하다|해요"
    "|한|할|(?:었|았|였|겠)(?:어요|습니다|다|어|니|나요)|습니다|습니까|입니다|입니까|이에요|예요|이야"
    "|어요|아요|나요|까요|에서는|에서|에게|한테|께서|으로|까지|부터|처럼|보다|이랑|이나|라고|에는"
    "|와|과|은|는|이|가|을|를|에|의|로|도|만|다|고|지|니|요|야)$"
)
_OTHER_THAN_HIRAGANA = re.compile("[^ぁ-ゟ]")
_LONGEST_ENDING = 2
_CONTRACTED = re.compile(
    r"\b[a-z]+n['\u2019\u02bc\u00b4`]t\b|(?:(?<=\bi)['\u2019]m|(?<=[a-z])['\u2019](?:d|ll|re|ve))\b",
    re.IGNORECASE,
)
"""An English contraction or its ending: "won't", "'ll". It is read as an English stop word: it asks
for nothing, but shows the language."""
_TIMES = frozenset(MONTH_NUMBERS) | frozenset(WEEKDAY_NUMBERS)
_YEAR = re.compile(r"(?:19|20)\d\d")
_WITHIN_SENTENCE = re.compile(
    r"(?:(?<=[\w,)'’]\s)|(?<=\b[A-Z][a-z]\.\s)|(?<=\b[A-Z][a-z]{2}\.\s)|(?<=\bProf\.\s))"
    r"[^\W\d_]\w+"
)
"""A word that follows another one, or the short form of a title."""


_MINE = re.compile(
    r"\b(?:my|our|mein\w{0,2}|unser\w{0,2}|mis?|nuestr[oa]s?|ma|mon|mes|notre|nos)\s+"
    r"(?P<first>[^\W\d_]{2,})(?:\s+(?P<second>[^\W\d_]{2,}))?",
    re.IGNORECASE,
)


class Term(msgspec.Struct, frozen=True):
    """One word or name that a question asks for.

    Attributes:
        forms: its tokens in the index: at first those that follow from the question, and after
            `Vocabulary.look_up` those that the index contains.
        kin: the stems of its forms; empty if `forms` are all forms that it can have.
        extra: whether it only supports other terms, so that it does not matter if it is unknown.
        weight: how much it counts: 1 for a term of the question itself, less for its context.
    """

    stem: str  # the stem that identifies it
    forms: tuple[str, ...]
    kin: frozenset[str] = frozenset()
    word: str = ""  # the word of the question, folded; empty in scripts without spaces
    extra: bool = False
    weight: float = 1.0


class Question(msgspec.Struct, frozen=True):
    """A question that was read.

    Attributes:
        languages: the languages in which its words are stemmed (see `languages`).
        names: the folded words that have a capital letter within a sentence, like names. It is
            empty if the question may be German, in which all nouns have one.
        periods: the times that it asks for; the words that name them are not terms.
        dates: the folded words that name days ("april", "17"); they are terms, too.
    """

    words: tuple[str, ...]  # its words, folded, in order, each once
    terms: tuple[Term, ...]  # the terms that carry meaning
    months: frozenset[int]  # the months that it names, 1 to 12
    years: frozenset[int]  # the years that it names
    languages: tuple[str, ...] = ("english",)
    names: frozenset[str] = frozenset()
    mine: frozenset[str] = frozenset()  # the folded words after "my" or "our", two for each
    periods: tuple[Period, ...] = ()
    dates: frozenset[str] = frozenset()
    requests: frozenset[str] = frozenset()  # the words with which it asks for something to be done
    zone: tzinfo = UTC  # the time zone in which days begin

    def names_only_a_time(self, names: Collection[str]) -> bool:
        """Return whether it asks only for what was said at a time, perhaps by some speakers."""
        return bool(self.periods) and all(
            is_asking_word(term.word)
            or term.word in ACTIVITIES
            or term.word in names
            or term.word in self.dates
            for term in self.terms
        )

    def terms_without(self, names: frozenset[str]) -> tuple[Term, ...]:
        """Return the terms that are not names of speakers; all of them if nothing else is left.

        A speaker's own utterances rarely contain their name, but those of others do, so the name
        would find the wrong ones.
        """
        kept = tuple(term for term in self.terms if term.word not in names)
        return kept or self.terms

    def without_asking_terms(self) -> "Question":
        """Return the question without the words of asking itself, if it has others."""
        kept = tuple(
            term
            for term in self.terms
            if not is_asking_word(term.word) and term.word not in self.requests
        )
        return msgspec.structs.replace(self, terms=kept or self.terms)

    def read_texts(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """Yield the tokens of each text; the form of a term is replaced by the term's stem."""
        known = {form: term.stem for term in self.terms for form in term.forms}
        parted = any(form.startswith(MARK) for form in known)
        signed = any(term.extra for term in self.terms)
        for text in texts:
            split = tokens(text, signed=signed)
            parts = [known[part] for part in parts_of(split) if part in known] if parted else []
            yield [known.get(token, token) for token in split] + parts

    def asks_for(self, text: str) -> bool:
        """Return whether a text contains a form of a term."""
        return bool(self.terms_in(text))

    def terms_in(self, text: str) -> list[Term]:
        """Return the terms of which a text contains a form."""
        words = frozenset(tokens(text))
        kin = frozenset[str]().union(*(stems_of(word, self.languages) for word in words))
        return [
            term
            for term in self.terms
            if not (term.kin.isdisjoint(kin) and words.isdisjoint(term.forms))
        ]


def parse_question(
    text: str, aside: str = "", now: int | None = None, zone: tzinfo = UTC
) -> Question:
    """Read a question; any text can be a question.

    Args:
        aside: the context of the question (see `sentences`): the more the question itself says, the
            less the words of the context count.
        now: when it is asked, milliseconds; if None, only names of months and years are seen.
        zone: the time zone in which days begin.
    """
    words = _plain(_said(text))
    languages = likely_languages(words)
    months = {MONTHS[word] for word in words if word in MONTHS and word != "may"}
    if _MONTH_MAY.search(text):
        months.add(MONTHS["may"])
    years = {int(word) for word in words if _YEAR.fullmatch(word)}
    names = frozenset() if "german" in languages else _names_in(f"{text}\n{aside}")
    times = NamedTimes(rest=text) if now is None else read_times(text, now, languages, zone)
    asked = _terms_of(times.rest, languages, _stop_words(times.rest, words, languages))
    terms = asked if _is_vague(times, asked) else _with_aside(asked, aside, languages)
    written = _ORDINAL.sub(r"\1", times.dates)
    stops = stop_words_among(words, languages) - MONTH_NUMBERS.keys()
    days = {
        stem: msgspec.structs.replace(term, extra=True)
        for stem, term in _terms_of(written, languages, stops).items()
    }
    return Question(
        words,
        tuple({**days, **terms}.values()),
        times.months.union(months),
        times.years.union(years),
        languages,
        names,
        frozenset(folded(word) for hit in _MINE.findall(text) for word in hit if word),
        times.periods,
        frozenset(term.word for term in days.values()),
        requests_of(text),
        zone,
    )


def _names_in(text: str) -> frozenset[str]:
    found = _WITHIN_SENTENCE.findall(text)
    named = (folded(word) for word in found if word[0].isupper() and word[1].islower())
    return frozenset(named) - _TIMES


def _stop_words(text: str, words: Sequence[str], languages: Sequence[str]) -> frozenset[str]:
    """Return the words that say nothing; "IT", "CI" and "Will" are names if they look like it."""
    written = in_capitals(text) - (STOP_WORDS - NAMES_IN_CAPITALS)
    names = written | {name.lower() for name in _NAMED_LIKE_A_VERB.findall(text)}
    return stop_words_among(words, languages) - names


def _is_vague(times: NamedTimes, asked: Mapping[str, Term]) -> bool:
    """Return whether a question names a time, and has no terms but words of asking."""
    return bool(times.periods) and all(is_asking_word(term.word) for term in asked.values())


def _with_aside(
    asked: Mapping[str, Term], aside: str, languages: Sequence[str]
) -> Mapping[str, Term]:
    """Add the terms of a question's context; identifiers in code have the full weight."""
    if not aside:
        return asked
    weight = 1 / (len(asked) + 1) ** 2
    beside = _terms_of(aside, languages, _stop_words(aside, _plain(_said(aside)), languages))
    weighed = {
        stem: msgspec.structs.replace(term, weight=1.0 if term.extra else weight)
        for stem, term in beside.items()
    }
    return {**weighed, **asked}


def stems(text: str) -> list[str]:
    """Return the English stems of all words of a text, in order."""
    return [min(stems_of(token, ("english",))) for token in tokens(text)]


def choose_terms(terms: Sequence[Term], found: Mapping[str, int]) -> list[Term]:
    """Return the terms to search for, within limits: those with more weight first, then rare ones.

    Args:
        found: how many facts contain each, by stem.
    """
    known = (term for term in terms if found[term.stem])
    rarest = sorted(known, key=lambda term: (-term.weight, found[term.stem]))
    taken: list[Term] = []
    rows = 0
    for term in rarest[:MAX_TERMS]:
        rows += found[term.stem]
        if taken and rows > MAX_MATCHES:
            break
        taken.append(term)
    return taken


def any_token_expression(tokens: Iterable[str], scopes: Iterable[str]) -> str:
    """Return the full-text expression that finds any of the tokens in any of the scopes.

    Args:
        tokens: tokens (see `words`).
        scopes: the prefixes of each scope's tokens (see `schema.scope_prefix`).
    """
    split = tuple(tokens)
    return " OR ".join(f'"{scope}{token}"' for scope in scopes for token in split)


def all_words_expression(phrases: Iterable[str], scopes: Sequence[str]) -> str:
    """Return the full-text expression that finds all words of any of the phrases, in any order.

    English stop words are left out, as in the index.

    Args:
        phrases: folded words, separated by spaces.
        scopes: see `any_token_expression`.
    """
    return " OR ".join(
        f"({' AND '.join(_any_spelling(scope + word) for word in phrase)})"
        for scope in scopes
        for phrase in phrase_tokens(phrases)
    )


def phrase_tokens(phrases: Iterable[str]) -> list[list[str]]:
    """Return the tokens of each phrase without stop words; phrases of only these are left out."""
    found = ([token for token in tokens(phrase) if token not in SILENT] for phrase in phrases)
    return [phrase for phrase in found if phrase]


def _any_spelling(word: str) -> str:
    return f'("{word}" OR "{word}{MARK}"*)'


def _said(text: str) -> tuple[str, ...]:
    said = (*whole_words(_CONTRACTED.sub(" would ", text)), *identifiers(text))
    return tuple(dict.fromkeys(said))[:MAX_WORDS]


def _plain(said: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(split_token(token)[0] for token in said))


def _terms_of(text: str, languages: Sequence[str], stops: Collection[str]) -> dict[str, Term]:
    asked_for, named = _without_stop_words(_said(text), stops), identifiers(text)
    return {term.stem: term for token in asked_for for term in _terms(token, languages, named)}


def _without_stop_words(said: Iterable[str], without: Collection[str]) -> list[str]:
    return [token for token in said if split_token(token)[0] not in without]


def _terms(token: str, languages: Sequence[str], named: Collection[str]) -> Iterator[Term]:
    plain, _ = split_token(token)
    kind = script_of(plain)
    if kind != "spaced":
        yield from (Term(part, (part,), extra=True) for part in _parts(plain, kind))
        return
    kin = stems_of(token, languages)
    split = () if token in named else tokens(token)
    forms = tuple(dict.fromkeys((token, *split, *irregular_forms(kin))))
    stem = min(stems_of(token, languages[:1]) or kin or {plain})
    yield Term(stem, forms, kin, plain, extra=token in named)
    if COMPOUNDING.intersection(languages[:-1]) and plain.isalpha():
        yield from _compounds(plain, kin)


def _compounds(word: str, kin: frozenset[str]) -> list[Term]:
    """Return terms that find a word within compounds, and the parts of a word that is one."""
    whole = frozenset(MARK + stem for stem in kin if len(stem) >= MIN_PART)
    parts = tuple(sorted(part[1:] for part in parts_of([word])))
    terms = []
    if whole:
        terms.append(Term(f"{MARK}{word}", (MARK + word,), whole, word, extra=True))
    if parts:
        terms.append(Term(f"{word}{MARK}", parts, frozenset(), word, extra=True))
    return terms


def _parts(run: str, kind: WritingSystem) -> list[str]:
    """Return the parts of a run of characters without spaces that are searched for."""
    if kind == "hangul":
        stem = _KOREAN_ENDING.sub("", run) or run
        return [] if stem in BY_LANGUAGE["korean"] else pairs(stem)
    words = [word for word in _RUN_STOP_WORDS.split(run) if _is_more_than_ending(word)]
    return [part for word in words for part in (triples(word) if kind == "thai" else pairs(word))]


def _is_more_than_ending(word: str) -> bool:
    """Return whether a part between stop words is more than an ending."""
    return (
        is_han(word) or len(word) > _LONGEST_ENDING or bool(_OTHER_THAN_HIRAGANA.search(word[1:]))
    )
