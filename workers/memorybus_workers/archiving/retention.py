"""Which rows of the archive lose their envelope: too old for their scope, or forgotten; pure.

The row itself stays, so that numbers remain dense and readers know that something was there.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
from memorybus.query.query import Query, Row

Verdict = Literal["", "retention", "forgotten"]

DAY_MS = 86_400_000
"""A row may outlive its retention by so much, or by a tenth of it: each segment is then rewritten
once a day at most."""


class SegmentAges(msgspec.Struct, frozen=True):
    """What the manifest says of a segment, as far as it matters here; times in milliseconds.

    Attributes:
        first_at: when its first event came into the log.
        last_at: when its last one did.
        judged_at: as of when what it keeps was decided.
        kept: rows that still have their envelope.
        tombstones: the mark of those that were known then.
    """

    first_at: int
    last_at: int
    judged_at: int
    kept: int
    tombstones: str = ""


class Policy(msgspec.Struct, frozen=True):
    """How long what is kept, and since when that is so.

    Attributes:
        ages: seconds by scope, as the setting `retention` has them; 0 for ever.
        since: when the setting was first seen like this (wall time, milliseconds).
        forgotten: what is to be forgotten.
        tombstones: the mark of what asks for that; "" for nothing.
    """

    ages: Mapping[str, float] = {}
    since: int = 0
    forgotten: Sequence[Query] = ()
    tombstones: str = ""

    @property
    def keeps_all(self) -> bool:
        """Whether no row can lose its envelope."""
        return not self.forgotten and not any(self.ages.values())

    def verdict(self, row: Row, at: int, now: int) -> Verdict:
        """Say whether a row keeps its envelope, and if not, why.

        Args:
            row: its columns.
            at: when it came into the log (milliseconds).
            now: wall time (milliseconds).
        """
        if any(query.wants(row) for query in self.forgotten):
            return "forgotten"
        kept_for = self.age(row)
        return "retention" if kept_for is not None and at + kept_for * 1000 <= now else ""

    def age(self, row: Row) -> float | None:
        """Return how many seconds a row is kept: the shortest that applies; None for ever."""
        names = (
            "default",
            f"user:{row.user}",
            f"agent:{row.agent}",
            f"workspace:{row.workspace}",
            f"platform:{row.platform}",
        )
        return min((self.ages[name] for name in names if self.ages.get(name)), default=None)

    def concerns(self, segment: SegmentAges, now: int) -> bool:
        """Say whether a segment has to be looked through again."""
        if not segment.kept:
            return False
        asked = self.forgotten and segment.tombstones != self.tombstones
        return bool(asked) or any(
            self._passed(segment, age, now) for age in set(self.ages.values())
        )

    def _passed(self, segment: SegmentAges, age: float, now: int) -> bool:
        """Say whether enough rows have grown older than an age since the segment was looked at."""
        age_ms = round(age * 1000)
        if not age_ms or segment.first_at + age_ms > now:
            return False
        upto = min(now - age_ms, segment.last_at)
        at = segment.judged_at
        seen = at - age_ms if at >= self.since else segment.first_at - 1
        if upto <= max(seen, segment.first_at - 1):
            return False
        return upto == segment.last_at or upto - seen >= min(DAY_MS, age_ms // 10)
