"""How the archive stands, from what the log shows and what archivers say; pure."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from memorybus.log.forecast import size
from memorybus.text.display import iso

if TYPE_CHECKING:
    from memorybus.archive.seals import Reports
    from memorybus.log.inspection import PartitionSight

NOBODY = "no worker archives"


class ArchiveStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How the archive stands, as `status --json` prints it; times are ISO 8601, UTC.

    Attributes:
        working: whether some worker archives, and nothing keeps it from doing so.
        error: what does; "" if nothing.
        damaged: whether the archive itself is not as it was: a person has to act.
        place: where it lies; null if no worker has said so.
        home: the host and directory of an archive that lies in a data_dir; null otherwise.
        sealed: how many events of the log are sealed.
        unsealed: how many are not yet.
        oldest_unsealed_at: since when the oldest of those is in the log; null for none.
        segments: how many files.
        bytes: of these.
    """

    working: bool = False
    error: str = NOBODY
    damaged: bool = False
    place: str | None = None
    home: str | None = None
    sealed: int = 0
    unsealed: int = 0
    oldest_unsealed_at: str | None = None
    segments: int = 0
    bytes: int = 0

    @property
    def hindered(self) -> bool:
        """Whether workers would archive and something keeps them all from it, so none ever will."""
        return not self.working and not self.error.startswith(NOBODY)

    @property
    def told(self) -> str:
        """What keeps the log from being trimmed; "" if nothing."""
        return "" if self.working else self.error


def status_of(
    sights: Mapping[int, "PartitionSight"], reports: "Reports", home: str | None
) -> ArchiveStatus:
    """Return how the archive stands.

    Args:
        sights: the partitions.
        reports: what archivers say.
        home: the host and directory where it lies; None if every worker reaches it, or nobody has
            it yet.
    """
    views = [sight.view for sight in sights.values()]
    return ArchiveStatus(
        working=reports.working,
        error=_error(reports, home),
        damaged=any(one.damaged for one in reports.workers.values()),
        place=reports.place or None,
        home=home,
        sealed=sum(view.sealed for view in views),
        unsealed=sum(max(0, view.n - view.sealed) for view in views),
        oldest_unsealed_at=iso(oldest_unsealed(sights)),
        segments=sum(part.segments for part in reports.parts.values()),
        bytes=sum(part.bytes for part in reports.parts.values()),
    )


def _error(reports: "Reports", home: str | None) -> str:
    if reports.working or reports.error:
        return reports.error
    where = f"; it lies on {home}: a worker has to run there" if reports.workers and home else ""
    return f"{NOBODY}{where}"


def oldest_unsealed(sights: Mapping[int, "PartitionSight"]) -> int | None:
    """Return when the oldest event came that is not sealed (milliseconds); None if all are."""
    places = [sight.view.unsealed for sight in sights.values()]
    return min((int(place.entry.partition("-")[0]) for place in places if place), default=None)


def told_archive(status: ArchiveStatus) -> str:
    """Return how the archive stands in words."""
    place = status.place or "no place yet"
    if not status.working:
        return f"nothing is trimmed: {status.error}"
    waiting = f"{status.unsealed:,} not yet" if status.unsealed else "all of them"
    since = f", the oldest since {status.oldest_unsealed_at}" if status.oldest_unsealed_at else ""
    held = f"{status.segments:,} segments of {size(status.bytes)} in {place}"
    return f"{status.sealed:,} events sealed, {waiting}{since}; {held}"
