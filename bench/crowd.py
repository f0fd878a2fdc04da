"""Recall of one person: among the turns of very many others, and among very many of their own.

The holographic provider alone: no Redis, no bus, one process, `prefetch` timed around its call.
People's turns lie side by side, as they would come. Texts are the suite's prose; a question is five
words of one of the person's own turns, the rarer ones, behind "what about".
"""

import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from gauge import Figures, Size, p50, p99, timed
from memorybus.events import Position, Scope, SessionRef, TurnCompleted
from memorybus.ids import derived_id
from memorybus_providers.base import Fence, HookContext, Progress, RecallContext, RecallScope
from memorybus_providers.holographic import HolographicProvider
from recall_lab import BATCH, opened
from texts import turns

TURNS_EACH = 500
OWN = 50_000
SESSION = 50
"""Turns of a session."""

_SCALE = 0.15
"""Turns of 100 to 250 characters: what people say, where the suite's usual turn is a model's."""

_QUESTIONS = 300
_TEXTS = 20_000
"""Different turns; the others say them again."""

_AT = 1_700_000_000_000


def measure(size: Size) -> Figures:
    """Return milliseconds, and turns a second."""
    said = [
        TurnCompleted(user=turn.user, assistant=turn.assistant)
        for turn in turns(_TEXTS, scale=_SCALE)
    ]
    with tempfile.TemporaryDirectory() as home, opened(Path(home)) as provider:
        people = max(2, size.past // TURNS_EACH)
        rate = _fill(provider, _side_by_side(said, people))
        among = _asked(provider, "person-1", _told(said, 1, people))
    with tempfile.TemporaryDirectory() as home, opened(Path(home)) as provider:
        own = min(OWN, size.past // 2)
        _fill(provider, ((said[n % _TEXTS], "person-0", n) for n in range(own)))
        alone = _asked(provider, "person-0", said[:TURNS_EACH])
    suffix = "" if size.past >= people * TURNS_EACH >= 1_000_000 else f"_of_{people * TURNS_EACH}"
    own_suffix = "50k" if own == OWN else f"{own}"
    return {
        f"holographic_recall_p50_ms{suffix}": p50(among),
        f"holographic_recall_p99_ms{suffix}": p99(among),
        f"holographic_recall_{own_suffix}_p50_ms": p50(alone),
        f"holographic_recall_{own_suffix}_p99_ms": p99(alone),
        "holographic_writes_per_s": rate,
    }


def _side_by_side(
    said: Sequence[TurnCompleted], people: int
) -> Iterator[tuple[TurnCompleted, str, int]]:
    for number in range(TURNS_EACH):
        for person in range(people):
            yield said[(person * TURNS_EACH + number) % _TEXTS], f"person-{person}", number


def _told(said: Sequence[TurnCompleted], person: int, people: int) -> list[TurnCompleted]:
    return [said[(person * TURNS_EACH + number) % _TEXTS] for number in range(TURNS_EACH)]


def _fill(provider: HolographicProvider, events: Iterator[tuple[TurnCompleted, str, int]]) -> float:
    """Apply turns as a lane does, in batches; return how many a second."""
    written, spent = 0, 0.0
    while batch := [event for event, _ in zip(events, range(BATCH), strict=False)]:
        ids = [derived_id("crowd", written + n) for n in range(len(batch))]
        began = time.perf_counter()
        with provider.transaction(Fence("p00", 1)) as transaction:
            for event_id, (event, person, number) in zip(ids, batch, strict=True):
                provider.sync_turn(event, _context(event_id, person, number))
            written += len(batch)
            transaction.record(ids, Progress(1, f"{written}-0", written))
        spent += time.perf_counter() - began
    return written / spent


def _context(event_id: str, person: str, number: int) -> HookContext:
    session = f"{person}-{number // SESSION}"
    place = Position(0, "1-0", 1)
    at = _AT + number * 60_000
    return HookContext(Scope(user=person), SessionRef(session, session), event_id, place, at, 5.0)


def _asked(
    provider: HolographicProvider, person: str, told: Sequence[TurnCompleted]
) -> list[float]:
    """Return the milliseconds of each question."""
    ctx = RecallContext(RecallScope(user=person))
    questions = _questions(told)
    spent = timed(lambda question: provider.prefetch(question, ctx), questions)
    return [one / 1e6 for one in spent]


def _questions(told: Sequence[TurnCompleted]) -> list[str]:
    rng = random.Random(5)
    common = Counter(word for turn in told for word in turn.user.split())
    asked = []
    for turn in rng.choices(told, k=_QUESTIONS):
        words = sorted(set(turn.user.split()), key=lambda word: (common[word], word))[:8]
        asked.append(f"What about {' '.join(rng.sample(words, min(5, len(words))))}?")
    return asked
