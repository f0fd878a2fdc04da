"""The full-text index is merged a little with each write, and never for many writes at once."""

import random
import sqlite3
from contextlib import closing

from memorybus.events import TurnCompleted
from unit.holographic.holographic_feeding import feed, opened, turn

AT_ONCE = 500
BEFORE, SINGLE = 8_000, 130
"""Turns in bulk; turns one by one, twice as many as FTS5 would merge at once."""

MAX_WRITE_FACTOR = 16
"""Times as much as the median turn that the largest may write: 11 measured (SQLite 3.40), and a
margin of half. With FTS5's own merging it is 32."""

WORDS = [f"word{number}" for number in range(20_000)]


def spoken(rng: random.Random) -> TurnCompleted:
    """Return a turn whose words are mostly new."""
    return turn(" ".join(rng.sample(WORDS, 60)), "noted")


def test_no_turn_pays_for_the_merges_of_many(tmp_path):
    """A turn that is applied alone writes little, where FTS5 itself would merge what many left."""
    rng = random.Random(1)
    grown: list[int] = []
    log = tmp_path / "holographic.db-wal"
    with opened(tmp_path) as provider:
        for first in range(1, BEFORE, AT_ONCE):
            feed(provider, [spoken(rng) for _ in range(AT_ONCE)], first=first)
        with closing(sqlite3.connect(tmp_path / "holographic.db")) as reader:
            reader.execute("pragma wal_checkpoint(truncate)")
            # While somebody reads, the log does not begin anew, so that its growth can be seen.
            reader.execute("begin").execute("select count(*) from facts").fetchone()
            for number in range(BEFORE, BEFORE + SINGLE):
                before = log.stat().st_size
                feed(provider, [spoken(rng)], first=number + 1)
                grown.append(log.stat().st_size - before)
    assert max(grown) < MAX_WRITE_FACTOR * sorted(grown)[SINGLE // 2]
