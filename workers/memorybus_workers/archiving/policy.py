"""What the archiver keeps of the archive: the policy, from the settings and the tombstones."""

from collections.abc import Iterable

from memorybus.archive.archive import Archive
from memorybus.archive.format.manifest import Judged, Segment
from memorybus.archive.seals import SealReports
from memorybus.archive.writer import Omit
from memorybus.config.settings import Settings
from memorybus.events import Omission
from memorybus.ids import sha256
from memorybus.query.query import Row

from memorybus_workers.archiving.due import moment_of
from memorybus_workers.archiving.retention import Policy, SegmentAges

_MARK = 16
"""Digits of a mark."""


def policy_of(archive: Archive, reports: SealReports, settings: Settings, now_ms: int) -> Policy:
    """Return what is kept now.

    Raises:
        ArchiveUnavailable, ArchiveDamaged: the tombstones cannot be read.
        redis.RedisError: Redis is away.
    """
    ages, tombstones = settings.retention, archive.tombstones()
    return Policy(
        ages=ages,
        since=reports.kept_since(ages, now_ms) if ages else 0,
        forgotten=[one.query for one in tombstones],
        tombstones=mark_of(one.id for one in tombstones),
    )


def mark_of(tombstones: Iterable[str]) -> str:
    """Return what tells one set of tombstones from another, whatever clocks say; "" for none."""
    names = sorted(tombstones)
    return sha256("\n".join(names).encode())[:_MARK] if names else ""


def judged(policy: Policy, now_ms: int) -> Judged:
    """Return as of when a policy decides what is kept.

    Not when the rows are written: that is later, and what grew too old or was forgotten in between
    would never be looked for again.

    Args:
        policy: what is kept.
        now_ms: the server's wall time when it was read.
    """
    return Judged(now_ms, policy.tombstones)


def omit_of(policy: Policy, first: int, last: int, now_ms: int) -> Omit | None:
    """Return what says which rows lose their envelope; None if all are kept.

    An event's own time is its agent's, whose clock may be wrong, or an import's. Where it cannot be
    when the event came into the log, the last time at which that may have been counts.

    Args:
        policy: what is kept.
        first: when the first of the rows came into the log (milliseconds).
        last: when the last one did.
        now_ms: wall time (milliseconds).
    """
    if policy.keeps_all:  # then no row is put together only to be asked about
        return None

    def omit(row: Row, at: int) -> Omission | None:
        came = at if first <= at <= last else last
        return policy.verdict(row, came, now_ms) or None

    return omit


def seen(segment: Segment) -> SegmentAges:
    """Return what matters of a segment for what is kept of it."""
    return SegmentAges(
        first_at=moment_of(segment.first.entry),
        last_at=moment_of(segment.last.entry),
        judged_at=segment.judged.at or segment.made_at,
        kept=segment.kept,
        tombstones=segment.judged.tombstones,
    )
