"""Turns to publish: text that compresses as prose does, sized as a turn event is.

The words come from the language reference inside Python's own standard library, chained by which
word follows which, so that their frequencies and neighbours are those of written English. A
constant or uniformly random text would flatter, or slander, the compression.
"""

import pydoc_data.topics
import random
import re
from collections.abc import Iterator

import msgspec

SESSIONS = 50
_WORD = re.compile(r"[A-Za-z][a-z']*[.,]?")


class Turn(msgspec.Struct, frozen=True):
    """What `Session.turn_completed` is called with."""

    session: int
    ordinal: int
    user: str
    assistant: str
    model: str
    tokens_in: int
    tokens_out: int


class Prose:
    """An endless text: a chain of words, each followed as it is in the source."""

    def __init__(self, rng: random.Random) -> None:
        """Learn which words follow which."""
        self._rng = rng
        self._words = _WORD.findall(" ".join(pydoc_data.topics.topics.values()))
        self._next: dict[str, list[str]] = {}
        for word, follower in zip(self._words, self._words[1:], strict=False):
            self._next.setdefault(word, []).append(follower)
        self._word = rng.choice(self._words)

    def text(self, length: int) -> str:
        """Return the next `length` characters."""
        words: list[str] = []
        size = 0
        while size <= length:
            self._word = self._rng.choice(self._next.get(self._word) or self._words)
            words.append(self._word)
            size += len(self._word) + 1
        return " ".join(words)[:length]


def turns(count: int, seed: int = 7, scale: float = 1.0) -> Iterator[Turn]:
    """Yield turns of about 1.4 KB encoded, spread over `SESSIONS` sessions.

    Args:
        count: how many.
        seed: other seeds, other texts.
        scale: texts of so many times the usual length.
    """
    rng = random.Random(seed)
    prose = Prose(rng)
    for number in range(count):
        yield Turn(
            session=number % SESSIONS,
            ordinal=number // SESSIONS,
            user=prose.text(round(scale * rng.randrange(150, 550))),
            assistant=prose.text(round(scale * rng.randrange(500, 1_050))),
            model="provider/some-model-name",
            tokens_in=rng.randrange(200, 4_000),
            tokens_out=rng.randrange(20, 900),
        )
