"""Decides which rows of the archive lose their envelope: too old for their scope, or forgotten."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from memorybus.archive.archive import Archive
from memorybus.archive.format.manifest import RetentionMark, Segment
from memorybus.archive.seals import SealReports
from memorybus.archive.writer import Omit
from memorybus.config.settings import Settings
from memorybus.events import Omission
from memorybus.ids import sha256
from memorybus.log.entry import entry_ms
from memorybus.query.query import EventRow, Query

_MARK_DIGITS = 16
DAY_MS = 86_400_000
"""A row may outlive its retention by so much, or by a tenth of it: each segment is then rewritten
once a day at most."""


class SegmentAges(msgspec.Struct, frozen=True):
    """What retention needs to know of a segment, from the manifest; times in milliseconds."""

    first_at: int  # when its first event came into the log
    last_at: int  # when its last event came into the log
    decided_at: int  # the time for which it was decided what it keeps
    kept: int  # rows that still have their envelope
    tombstones: str = ""  # the mark of the tombstones that were known then


class Policy(msgspec.Struct, frozen=True):
    """How long the content of rows is kept, and since when this setting has applied."""

    # seconds by scope, as the setting `retention` has them; 0 for ever
    ages: Mapping[str, float] = {}
    since: int = 0  # when the setting was first seen like this (wall time, milliseconds)
    forgotten: Sequence[Query] = ()  # the queries of the tombstones
    tombstones: str = ""  # the mark of these tombstones; "" for none

    @property
    def keeps_all(self) -> bool:
        return not self.forgotten and not any(self.ages.values())

    def omission(self, row: EventRow, at: int, now: int) -> Omission | None:
        if any(query.wants(row) for query in self.forgotten):
            return "forgotten"
        kept_for = self.retention_of(row)
        return "retention" if kept_for is not None and at + kept_for * 1000 <= now else None

    def retention_of(self, row: EventRow) -> float | None:
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
        if not segment.kept:
            return False
        asked = self.forgotten and segment.tombstones != self.tombstones
        return bool(asked) or any(
            self._has_passed(segment, age, now) for age in set(self.ages.values())
        )

    def _has_passed(self, segment: SegmentAges, age: float, now: int) -> bool:
        """Whether enough rows have grown older than an age since the segment was looked at."""
        age_ms = round(age * 1000)
        if not age_ms or segment.first_at + age_ms > now:
            return False
        upto = min(now - age_ms, segment.last_at)
        at = segment.decided_at
        seen = at - age_ms if at >= self.since else segment.first_at - 1
        if upto <= max(seen, segment.first_at - 1):
            return False
        return upto == segment.last_at or upto - seen >= min(DAY_MS, age_ms // 10)


def read_policy(archive: Archive, reports: SealReports, settings: Settings, now_ms: int) -> Policy:
    ages, tombstones = settings.retention, archive.tombstones()
    return Policy(
        ages=ages,
        since=reports.retention_since(ages, now_ms) if ages else 0,
        forgotten=[tombstone.query for tombstone in tombstones],
        tombstones=mark_of_tombstones(tombstone.id for tombstone in tombstones),
    )


def mark_of_tombstones(tombstones: Iterable[str]) -> str:
    """Return a digest that distinguishes sets of tombstones without clocks; "" for no tombstone."""
    names = sorted(tombstones)
    return sha256("\n".join(names).encode())[:_MARK_DIGITS] if names else ""


def judgement_of(policy: Policy, now_ms: int) -> RetentionMark:
    """Return the time and the tombstones with which a policy decides what is kept.

    This is not the later time at which the rows are written: otherwise rows that grew too old or
    were forgotten in between would never be found.
    """
    return RetentionMark(now_ms, policy.tombstones)


def build_omission_filter(policy: Policy, first: int, last: int, now_ms: int) -> Omit | None:
    """Return a function that says which rows lose their envelope; None if all are kept.

    An event's own time comes from its agent, whose clock may be wrong, or from an import. If it
    lies outside the span in which the rows came into the log, the end of that span counts.
    """
    if policy.keeps_all:  # so that no row has to be built for the question
        return None

    def omit(row: EventRow, at: int) -> Omission | None:
        came = at if first <= at <= last else last
        return policy.omission(row, came, now_ms)

    return omit


def ages_of(segment: Segment) -> SegmentAges:
    return SegmentAges(
        first_at=entry_ms(segment.first.entry),
        last_at=entry_ms(segment.last.entry),
        decided_at=segment.judged.at or segment.made_at,
        kept=segment.kept,
        tombstones=segment.judged.tombstones,
    )
