"""Concludes by choosing sentences of a session, its topics, and what is known of the person.

It needs no model and no network, and adds no word of its own. A sentence counts as much as its
words come up elsewhere in the session; one that repeats a chosen one counts less.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from math import log, sqrt
from typing import ClassVar, Final

import msgspec
from memorybus.events import DerivedKind
from memorybus.small_talk import says_nothing

from memorybus_providers.deriving.deriver import Conclusion, Deriver, Material, Passage
from memorybus_providers.language.languages import is_stop_word
from memorybus_providers.language.query import stems
from memorybus_providers.language.sentences import sentences
from memorybus_providers.language.time_words import MONTH_NUMBERS, WEEKDAY_NUMBERS
from memorybus_providers.ranking.asking import statement_of
from memorybus_providers.ranking.facts import names_in

SUMMARY_CHARS = 800
MAX_SENTENCES = 8
MAX_TOPICS = 6
"""The most characters and sentences of a summary, and the most topics of a session."""

PROFILE_CHARS = 2_000
MAX_LINE_CHARS = 300
"""The most characters of a profile, a few hundred words, and of one of its lines."""

_SHORTEST, _LONGEST = 15, 300
"""Characters of a sentence that may be chosen."""

_WEIGHT_OF_PERSON: Final = 1.5
"""What a person told says more of a session than what the agent answered."""


class _Sentence(msgspec.Struct, frozen=True):
    """A sentence that may be chosen, with its place in the session and its stems."""

    place: int
    text: str
    passage: Passage
    terms: frozenset[str]


class ExtractiveDeriver(Deriver):
    """Chooses sentences of what was said."""

    name = "extractive"
    revision: ClassVar[str] = "1"

    def derive(self, material: Material) -> Sequence[Conclusion]:
        """Return the session's summary and topics, and the person's profile, where they changed."""
        told = list(_told(material.said))
        made = (_summary(told), _topics(told), _profile(material.essentials))
        return [
            msgspec.structs.replace(conclusion, supersedes=before)
            for conclusion in made
            if conclusion is not None
            for before in _superseded(conclusion, material)
        ]


def _superseded(conclusion: Conclusion, material: Material) -> Iterator[tuple[str, ...]]:
    """Yield the ids of what a conclusion replaces; nothing if it repeats what holds already."""
    same_kind = [known for known in material.known if known.kind == conclusion.kind]
    newest = same_kind[0] if same_kind else None
    if newest is None or newest.text != conclusion.text:
        yield (newest.id,) if newest else ()


def _told(said: Iterable[Passage]) -> Iterator[_Sentence]:
    """Yield the sentences that tell something, once each."""
    seen: set[str] = set()
    for passage in said:
        for sentence in sentences(passage.text):
            text = " ".join(statement_of(sentence).split())
            if _SHORTEST <= len(text) <= _LONGEST and text not in seen and not says_nothing(text):
                seen.add(text)
                terms = frozenset(stem for stem in stems(text) if not is_stop_word(stem))
                yield _Sentence(len(seen), text, passage, terms)


def _summary(told: Sequence[_Sentence]) -> Conclusion | None:
    chosen = sorted(_choose(told), key=lambda sentence: sentence.place)
    lines = [f"{sentence.passage.speaker}: {sentence.text}" for sentence in chosen]
    return _conclusion("summary", "\n".join(lines), (sentence.passage for sentence in chosen))


def _choose(told: Sequence[_Sentence]) -> Iterator[_Sentence]:
    """Yield the sentences that say most, each time given those before, while there is room."""
    spread = Counter(term for sentence in told for term in sentence.terms)
    covered: set[str] = set()
    left, room = list(told), SUMMARY_CHARS
    for _ in range(MAX_SENTENCES):
        left = [sentence for sentence in left if _size(sentence) <= room]
        if not left:
            return
        best = max(left, key=lambda sentence: (_worth(sentence, spread, covered), -sentence.place))
        left.remove(best)
        covered |= best.terms
        room -= _size(best)
        yield best


def _size(sentence: _Sentence) -> int:
    return len(sentence.passage.speaker) + len(sentence.text) + len(": \n")


def _worth(sentence: _Sentence, spread: Counter[str], covered: set[str]) -> float:
    new = sum(log(1 + spread[term]) for term in sentence.terms - covered)
    names = len(names_in(sentence.text))
    weight = _WEIGHT_OF_PERSON if sentence.passage.kind == "user" else 1.0
    return weight * (new + names) / sqrt(1 + len(sentence.terms))


def _topics(told: Sequence[_Sentence]) -> Conclusion | None:
    """Return the names that come up in a session, those that come up most often first."""
    sources: dict[str, Passage] = {}
    counts = Counter[str]()
    for sentence in told:
        for name in {name.removesuffix("'s"): None for name in names_in(sentence.text)}:
            counts[name] += 1
            sources.setdefault(name, sentence.passage)
    names = (name for name, _ in counts.most_common() if not all(map(_is_no_name, name.split())))
    chosen = list(islice(names, MAX_TOPICS))
    return _conclusion("topic", ", ".join(chosen), (sources[name] for name in chosen))


def _is_no_name(word: str) -> bool:
    folded = word.casefold()
    times = {folded, folded.removesuffix("s")} & {*MONTH_NUMBERS, *WEEKDAY_NUMBERS}
    return is_stop_word(folded) or bool(times)


def _profile(essentials: Sequence[Passage]) -> Conclusion | None:
    """Return what is known of the person, the most important first, while there is room."""
    lines = {passage: line for passage in essentials if (line := _line(passage))}
    ends = accumulate(len(line) + len("\n") for line in lines.values())
    fitting = [passage for passage, end in zip(lines, ends, strict=True) if end <= PROFILE_CHARS]
    return _conclusion("profile", "\n".join(lines[passage] for passage in fitting), fitting)


def _line(passage: Passage) -> str:
    text = " ".join(passage.text.split())
    label = f"{passage.speaker}: " if passage.speaker else ""
    return f"{label}{text}" if text and len(text) <= MAX_LINE_CHARS else ""


def _conclusion(kind: DerivedKind, text: str, passages: Iterable[Passage]) -> Conclusion | None:
    """Return a conclusion with its sources; None without a text or a source."""
    sources = tuple(dict.fromkeys(passage.event for passage in passages if passage.event))
    return Conclusion(kind=kind, text=text, sources=sources) if text and sources else None
