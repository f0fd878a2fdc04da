"""Recall of one person: among the turns of very many others, and among very many of their own.

The holographic provider alone: no Redis, no bus, one process, `prefetch` timed around its call.
People's turns lie side by side, as they would come. Texts are the suite's prose; a question is five
words of one of the person's own turns, the rarer ones, behind "what about".
"""

import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gauge import Figures, Size, p50, p99, timed
from memorybus.events import Position, Scope, SessionRef, TurnCompleted
from memorybus.ids import derived_id
from memorybus_providers.base import (
    Fence,
    HookContext,
    Progress,
    RecallContext,
    RecallScope,
    TransactionalProvider,
)
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

_MILLION = 1_000_000
"""Of fewer turns the figures say of how many; the bounds are for these."""

_AT_MS = 1_700_000_000_000


_Spoken = tuple[TurnCompleted, str, int]
"""A turn, whose it is, and which of the person's it is."""


def measure(size: Size) -> Figures:
    """Return milliseconds, and turns a second."""
    said = [
        TurnCompleted(user=turn.user, assistant=turn.assistant)
        for turn in turns(_TEXTS, scale=_SCALE)
    ]
    people = size.past // TURNS_EACH
    own = min(OWN, size.past // 2)
    with _filled(side_by_side(said, people)) as (provider, rate):
        among = asked(provider, "person-1", told(said, 1))
    with _filled((said[n % _TEXTS], "person-0", n) for n in range(own)) as (provider, _):
        alone = asked(provider, "person-0", said[:TURNS_EACH])
    full = people * TURNS_EACH >= _MILLION
    suffix = "" if full else f"_of_{people * TURNS_EACH}"
    return {
        f"holographic_recall_p50_ms{suffix}": p50(among),
        f"holographic_recall_p99_ms{suffix}": p99(among),
        f"holographic_recall_{own // 1_000}k_p50_ms": p50(alone),
        f"holographic_recall_{own // 1_000}k_p99_ms": p99(alone),
        f"holographic_writes_per_s{suffix}": rate,
    }


@contextmanager
def _filled(said: Iterable[_Spoken]) -> Iterator[tuple[HolographicProvider, float]]:
    """Yield a provider that has heard all of it, and how many turns it took in a second."""
    with tempfile.TemporaryDirectory() as home, opened(Path(home)) as provider:
        yield provider, fill(provider, iter(said))


def side_by_side(
    said: Sequence[TurnCompleted], people: int, each: int = TURNS_EACH
) -> Iterator[_Spoken]:
    """Yield turns of people, so many of each, in the order in which they would come."""
    for number in range(each):
        for person in range(people):
            yield said[(person * each + number) % _TEXTS], f"person-{person}", number


def told(said: Sequence[TurnCompleted], person: int, each: int = TURNS_EACH) -> list[TurnCompleted]:
    """Return the turns of one of them."""
    return [said[(person * each + number) % _TEXTS] for number in range(each)]


def fill(provider: TransactionalProvider, events: Iterator[_Spoken]) -> float:
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
    at = _AT_MS + number * 60_000
    return HookContext(Scope(user=person), SessionRef(session, session), event_id, place, at, 5.0)


def asked(
    provider: TransactionalProvider, person: str, turns_of: Sequence[TurnCompleted]
) -> list[float]:
    """Return the milliseconds of each question."""
    ctx = RecallContext(RecallScope(user=person))
    questions = _questions(turns_of)
    spent = timed(lambda question: provider.prefetch(question, ctx), questions)
    return [one / 1e6 for one in spent]


def _questions(told: Sequence[TurnCompleted]) -> list[str]:
    rng = random.Random(5)
    common = Counter(word for turn in told for word in turn.user.split())
    found = []
    for turn in rng.choices(told, k=_QUESTIONS):
        words = sorted(set(turn.user.split()), key=lambda word: (common[word], word))[:8]
        found.append(f"What about {' '.join(rng.sample(words, min(5, len(words))))}?")
    return found
