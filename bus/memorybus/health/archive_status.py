"""The status of the archive, from what the log shows and what archivers report; pure."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from memorybus.log.entry import entry_ms
from memorybus.text.display import format_size, iso

if TYPE_CHECKING:
    from memorybus.archive.seals import ArchiverReports
    from memorybus.log.inspection import PartitionState

_NO_ARCHIVER = "no worker archives"


class ArchiveStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of the archive, as `status --json` prints it; times are ISO 8601, UTC.

    Attributes:
        working: whether some worker archives.
        error: what keeps all workers from archiving; where one archives, what others found damaged;
            "" if nothing is wrong.
        damaged: whether the archive's files were changed, so that a person has to act.
        hindered: whether an error keeps all workers from archiving.
        place: where it lies; null if no worker has reported that.
        home: the host and directory of an archive that lies in a data_dir; null otherwise.
        sealed: how many events of the log are sealed.
        unsealed: how many are not sealed yet.
        oldest_unsealed_at: when the oldest of these entered the log; null for none.
        segments: how many files it has.
        bytes: the size of these files.
    """

    working: bool = False
    error: str = _NO_ARCHIVER
    damaged: bool = False
    hindered: bool = False
    place: str | None = None
    home: str | None = None
    sealed: int = 0
    unsealed: int = 0
    oldest_unsealed_at: str | None = None
    segments: int = 0
    bytes: int = 0

    @property
    def obstacle(self) -> str:
        """What keeps the log from being trimmed; "" if nothing."""
        return "" if self.working else self.error


def build_archive_status(
    states: Mapping[int, "PartitionState"], reports: "ArchiverReports", home: str | None
) -> ArchiveStatus:
    """Return the status of the archive.

    Args:
        states: the partitions.
        reports: what archivers report.
        home: the host and directory where it lies; None if it lies in a store that every worker
            reaches, or if no host has claimed it yet.
    """
    views = [state.view for state in states.values()]
    return ArchiveStatus(
        working=reports.working,
        error=_error(reports, home),
        damaged=any(one.damaged for one in reports.workers.values()),
        hindered=bool(reports.error) and not reports.working,
        place=reports.place or None,
        home=home,
        sealed=sum(view.sealed for view in views),
        unsealed=sum(max(0, view.n - view.sealed) for view in views),
        oldest_unsealed_at=iso(oldest_unsealed(states)),
        segments=sum(part.segments for part in reports.parts.values()),
        bytes=sum(part.bytes for part in reports.parts.values()),
    )


def _error(reports: "ArchiverReports", home: str | None) -> str:
    if reports.working or reports.error:
        return reports.error
    where = f"; it lies on {home}: a worker has to run there" if reports.workers and home else ""
    return f"{_NO_ARCHIVER}{where}"


def oldest_unsealed(states: Mapping[int, "PartitionState"]) -> int | None:
    """Return when the oldest unsealed event entered the log; None if all events are sealed.

    The time is Redis's wall time, milliseconds since the Unix epoch.
    """
    places = [state.view.unsealed for state in states.values()]
    return min((entry_ms(place.entry) for place in places if place), default=None)


def describe_archive(status: ArchiveStatus) -> str:
    """Return the status of the archive in words."""
    place = status.place or "no place yet"
    if not status.working:
        return f"nothing is trimmed: {status.error}"
    waiting = f"{status.unsealed:,} not yet" if status.unsealed else "all of them"
    since = f", the oldest since {status.oldest_unsealed_at}" if status.oldest_unsealed_at else ""
    stored = f"{status.segments:,} segments of {format_size(status.bytes)} in {place}"
    damage = f"; {status.error}" if status.error else ""
    return f"{status.sealed:,} events sealed, {waiting}{since}; {stored}{damage}"
