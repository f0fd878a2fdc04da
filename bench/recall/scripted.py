"""Facts as a model would conclude them, in two styles, for recall with facts but without a model.

They tell nothing that was not said, so the room that they take in a block is lost to the evidence.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from memorybus.events import Derived, TurnCompleted
from memorybus.ids import derived_id
from memorybus_providers.base import Fence, Progress
from memorybus_providers.deriving.by_model import MAX_FACTS, MAX_KNOWN
from memorybus_providers.holographic import HolographicProvider
from recall_lab import context_of, turn_id

EVERY_TURNS = 20  # the turns of a stretch from which a model concludes at once, as by default

_OF_ONESELF = re.compile(r"\bI (\w+[^.!?]*)")
_SHORT_CHARS = 60

Turn = tuple[TurnCompleted, str, int]


class Statement(NamedTuple):
    """What somebody said of themselves, and the event that brought it."""

    speaker: str
    text: str
    event: str


Known = Sequence[tuple[str, str]]
"""The ids and texts of the facts that hold, the newest first."""

Style = Callable[[Sequence[Statement], Known], Iterator[Derived]]


def again(stretch: Sequence[Statement], known: Known) -> Iterator[Derived]:
    """Yield each "I …" as a fact; one of the same verb replaces those before it."""
    for said in stretch:
        verb = said.text.split()[0]
        gone = tuple(name for name, text in known if f" {verb} " in text)
        text = f"The person {said.text}."
        yield Derived(kind="fact", text=text, sources=(said.event,), supersedes=gone)


def merged(stretch: Sequence[Statement], known: Known) -> Iterator[Derived]:
    """Yield short facts in the third person, each of two statements of one speaker."""
    for speaker in dict.fromkeys(said.speaker for said in stretch):
        told = [said for said in stretch if said.speaker == speaker]
        for first, second in zip(told[::2], told[1::2], strict=False):
            text = f"{speaker} {_short(first.text)} and {_short(second.text)}."
            yield Derived(kind="fact", text=text, sources=(first.event, second.event))


STYLES: Mapping[str, Style] = {"again": again, "merged": merged}


def conclude(provider: HolographicProvider, turns: Sequence[Turn], style: str) -> None:
    """Let a provider keep what a model would conclude of turns that were fed to it."""
    facts = list(_conclusions(turns, STYLES[style]))
    with provider.transaction(Fence("p01", 1)) as transaction:
        for name, session, at, event in facts:
            provider.on_derived(event, context_of(name, session, at))
        names = [name for name, *_ in facts]
        transaction.record(names, Progress(1, f"{len(names)}-0", len(names)))


def _conclusions(turns: Sequence[Turn], style: Style) -> Iterator[tuple[str, str, int, Derived]]:
    """Yield the id, the session and the time of each conclusion, and itself."""
    known = deque[tuple[str, str]](maxlen=MAX_KNOWN)
    for session, stretch in _stretches(turns):
        said = [each for number, (turn, *_) in stretch for each in _statements(turn, number)]
        at = stretch[-1][1][2]
        for event in list(islice(style(said, tuple(known)), MAX_FACTS)):
            name = derived_id("fact", *event.sources, event.text)
            for gone in [each for each in known if each[0] in event.supersedes]:
                known.remove(gone)
            known.appendleft((name, event.text))
            yield name, session, at, event


def _stretches(turns: Sequence[Turn]) -> Iterator[tuple[str, list[tuple[int, Turn]]]]:
    for session, told in groupby(enumerate(turns), key=lambda each: each[1][1]):
        numbered = list(told)
        for start in range(0, len(numbered), EVERY_TURNS):
            yield session, numbered[start : start + EVERY_TURNS]


def _statements(turn: TurnCompleted, number: int) -> Iterator[Statement]:
    sides = ((turn.user_name or "The user", turn.user),)
    sides += ((turn.assistant_name or "The assistant", turn.assistant),)
    for speaker, text in sides:
        for told in _OF_ONESELF.findall(text):
            yield Statement(speaker, told, turn_id(number))


def _short(text: str) -> str:
    return text[:_SHORT_CHARS].rsplit(" ", 1)[0] if len(text) > _SHORT_CHARS else text
