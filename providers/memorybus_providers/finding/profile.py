"""Tells what is known of a person if nothing in particular is asked.

Its parts, in this order: what the person told the agent to keep to, what was kept, and the rest, a
model's profile of the person, the names that come up most, and what the newest days were about.
Each of the first two gets at most its share of the room at first, so that the rest is seen; what is
left goes to whichever has more to tell.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, tzinfo
from itertools import filterfalse, islice

import msgspec
from memorybus.small_talk import says_nothing

from memorybus_providers.base import RecallScope
from memorybus_providers.deriving.extractive import ExtractiveDeriver
from memorybus_providers.finding.source import LATEST_STORABLE, FactSource, View
from memorybus_providers.finding.validity import FactValidity
from memorybus_providers.language.asking_words import is_asking_word
from memorybus_providers.language.languages import is_stop_word
from memorybus_providers.language.sentences import sentences
from memorybus_providers.language.time_words import MONTH_NUMBERS, WEEKDAY_NUMBERS
from memorybus_providers.language.words import split_token, whole_words
from memorybus_providers.ranking.asking import statement_of
from memorybus_providers.ranking.facts import names_in
from memorybus_providers.ranking.ranking import LAST_MS, Fact, Scored
from memorybus_providers.ranking.trust import INITIAL_TRUST
from memorybus_providers.remembering.instructions import (
    INSTRUCTION,
    instructions_in,
    subject_of,
)

SHARE = 0.4
"""The share of the room that instructions, and what was kept, get at least if others want more."""

MAX_NAMES = 8
LEAST_TIMES = 2  # the most names that are given, and how often each came up at least

MAX_TOPICS = 12
MAX_TOPIC_CHARS = 140
MAX_ASKED_WORDS = 5
"""The most lines of what was said, the most characters of such a line, and the most words of what
was only asked."""

_LINE_CHARS = 38  # characters of a line beside its text: a date and a label

_LEAST_CHARS = 40
_MORE_CHARS = 70  # a line is not cut to fewer characters, and how many say where all of it is

_PROFILE_LABEL = "profile"
_NAMES_LABEL = "comes up most"
_TOPIC_LABEL = "topic"
_ASKED_LABEL = "asked about"

_KEPT_ORDER = {"user-store": 0, "memory": 1, "note": 2, "fact": 2}
"""The person's profile comes first, then the agent's notes for itself, then the model's."""


def profile(
    source: FactSource,
    scope: RecallScope,
    budget: int,
    as_of: int | None = None,
    zone: tzinfo = UTC,
    *,
    derived: bool = False,
) -> list[tuple[Scored, str]]:
    """Return what is known of a person, with the texts that fill `budget` characters.

    Args:
        derived: also the profile that a model derived, before names and topics.
        budget: the characters of all lines.
        as_of: only what was known at this time, milliseconds; None for now.
        zone: the time zone in which days begin.
    """
    view = View(scope, known_by=LATEST_STORABLE if as_of is None else as_of)
    facts = list(source.essentials(view))
    kept = [fact for fact in facts if fact.place is None]
    marked = FactValidity(source).settle([Scored(fact, 1.0) for fact in kept], scope, as_of)
    holding = [one.fact for one in marked if not one.until]
    said = [_without_instructions(fact) for fact in facts if fact.kind == "user"]
    instructions, others, rest = _parts(holding, said, zone)
    written = _derived(source, view) if derived else []
    lines = _fill((instructions, others, [*written, *rest]), budget)
    return [(Scored(line, 1 / place), text) for place, (line, text) in enumerate(lines, start=1)]


def _parts(
    kept: Sequence[Fact], facts: Sequence[Fact], zone: tzinfo
) -> tuple[list[Fact], list[Fact], list[Fact]]:
    """Return the lines of instructions, of what was kept, and of all else."""
    instructions = [fact for fact in kept if fact.category == INSTRUCTION]
    others = [fact for fact in kept if fact.category != INSTRUCTION]
    rest = [*_names([*others, *facts]), *_topics(facts, zone)]
    return _newest_wordings(instructions), sorted(others, key=_importance), rest


def _derived(source: FactSource, view: View) -> list[Fact]:
    """Return the newest profile that a model wrote; one of chosen sentences would repeat them."""
    profiles = (
        _line(_PROFILE_LABEL, " ".join(known.text.split()), known.at, known.id)
        for known in source.conclusions("", view.scope)
        if known.kind == "profile" and known.deriver != ExtractiveDeriver.name
        if known.at <= view.known_by
    )
    return list(islice(profiles, 1))


def _without_instructions(fact: Fact) -> Fact:
    text = fact.content
    for instruction in instructions_in(text):
        text = text.replace(instruction, "")
    return msgspec.structs.replace(fact, content=text)


def _importance(fact: Fact) -> tuple[int, float, int, int]:
    return _KEPT_ORDER.get(fact.kind, len(_KEPT_ORDER)), -fact.trust, -fact.at, -fact.id


def _newest_wordings(instructions: Iterable[Fact]) -> list[Fact]:
    """Return instructions, the newest first; of several of one subject the newest alone."""
    newest: dict[frozenset[str], Fact] = {}
    for fact in _newest_first(instructions):
        newest.setdefault(subject_of(fact.content), fact)
    return list(newest.values())


def _names(facts: Sequence[Fact]) -> Iterator[Fact]:
    """Yield a line with the names that most texts mention, if any come up again and again."""
    counts = Counter(
        name.removesuffix("'s")
        for fact in facts
        for name in names_in(fact.content)
        if not all(map(_is_no_name, whole_words(name)))
    )
    often = [name for name, times in counts.most_common(MAX_NAMES) if times >= LEAST_TIMES]
    if often:
        yield _line(_NAMES_LABEL, ", ".join(often))


def _is_no_name(word: str) -> bool:
    return is_stop_word(word) or word in MONTH_NUMBERS or word in WEEKDAY_NUMBERS


def _topics(facts: Iterable[Fact], zone: tzinfo) -> list[Fact]:
    """Return what was told first on each day in each session, the newest first, then the rest.

    What was only asked is given last, by its words.
    """
    days: dict[tuple[str, date], Fact] = {}
    rest = []
    for fact in sorted(facts, key=lambda fact: (fact.at, fact.place or (0, 0), fact.id)):
        line = _topic(fact)
        if line is None:
            continue
        day = fact.session, datetime.fromtimestamp(min(fact.at, LAST_MS) / 1000, zone).date()
        if line.speaker == _TOPIC_LABEL and days.setdefault(day, line) is not line:
            rest.append(line)
        elif line.speaker == _ASKED_LABEL:
            rest.insert(0, line)
    return [*_newest_first(days.values()), *reversed(rest)][:MAX_TOPICS]


def _newest_first(facts: Iterable[Fact]) -> list[Fact]:
    return sorted(facts, key=lambda fact: (-fact.at, -fact.id))


def _topic(fact: Fact) -> Fact | None:
    """Return the line for what a text was about; None if it tells nothing."""
    told = " ".join(filterfalse(says_nothing, map(statement_of, sentences(fact.content))))
    if told:
        shown = shortened(" ".join(told.split()), MAX_TOPIC_CHARS)
        return msgspec.structs.replace(fact, speaker=_TOPIC_LABEL, content=shown)
    if says_nothing(fact.content):
        return None
    words = dict.fromkeys(filter(_says_of_what, whole_words(fact.content)))
    shown = ", ".join(split_token(word)[1] for word in islice(words, MAX_ASKED_WORDS))
    return msgspec.structs.replace(fact, speaker=_ASKED_LABEL, content=shown) if words else None


def _says_of_what(word: str) -> bool:
    plain = split_token(word)[0]
    return len(plain) > 1 and not is_stop_word(plain) and not is_asking_word(plain)


def _line(label: str, text: str, at: int = 0, event: str = "") -> Fact:
    return Fact(0, None, INITIAL_TRUST, "", "", "", label, at, text, "", "", event)


def _fill(parts: Sequence[Sequence[Fact]], budget: int) -> list[tuple[Fact, str]]:
    """Return the lines that fit, part by part, with their texts; the last of a part may be cut."""
    *shared, rest = parts
    rooms = [min(_size(part), int(SHARE * budget)) for part in shared]
    rooms.append(max(0, budget - sum(rooms)))
    left = rooms[-1] - _size(rest)
    for number, part in enumerate(shared):
        more = max(0, min(left, _size(part) - rooms[number]))
        rooms[number] += more
        left -= more
    return [line for part, room in zip(parts, rooms, strict=True) for line in _taken(part, room)]


def _size(lines: Iterable[Fact]) -> int:
    return sum(len(line.content) + _LINE_CHARS for line in lines)


def _taken(lines: Iterable[Fact], room: int) -> Iterator[tuple[Fact, str]]:
    """Yield lines with their texts until the room is full; of the last one what fits."""
    for line in lines:
        left = room - _LINE_CHARS
        if len(line.content) > left:
            if left - _MORE_CHARS >= _LEAST_CHARS:
                yield line, shortened(line.content, left - _MORE_CHARS)
            return
        yield line, line.content
        room = left - len(line.content)


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` characters, cut after a word and marked with "…"."""
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut[most // 2 :] else cut}…"
