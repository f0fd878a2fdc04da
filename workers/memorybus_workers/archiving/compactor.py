"""Segments written anew: small ones merged, what is kept no longer taken out."""

from collections.abc import Collection, Sequence
from itertools import groupby

from memorybus.archive.archive import Archive
from memorybus.archive.format.manifest import Segment
from memorybus.config.settings import Settings
from memorybus.errors import ArchiveDamaged, SegmentDamaged

from memorybus_workers.archiving.due import moment_of
from memorybus_workers.archiving.merges import Size, choose
from memorybus_workers.archiving.policy import judged, omit_of, seen
from memorybus_workers.archiving.retention import Policy


class Compactor:
    """Rewrites segments of partitions that the caller owns. Belongs to one thread."""

    def __init__(self, settings: Settings) -> None:
        """Rewrite nothing yet."""
        self._settings = settings

    def work(self, archive: Archive, partition: int, policy: Policy, now_ms: int) -> int:
        """Merge what is small, take out what is kept no longer; return how many were rewritten.

        What this pass has written is not looked through again, whatever the clocks say. A segment
        that cannot be read is passed over: what is to leave the others leaves them.

        Args:
            archive: the log's.
            partition: whose lane `@archive` is the caller's.
            policy: what is kept.
            now_ms: the server's wall time when the policy was read.

        Raises:
            ArchiveUnavailable: it cannot be reached.
            ArchiveTaken: another archiver was first.
            ArchiveDamaged: segments cannot be read; all that can be done is done.
        """
        rewritten = 0
        fresh: set[str] = set()
        damage: dict[str, str] = {}
        while chosen := self._next(_sound(archive, partition, damage), policy, fresh, now_ms):
            first, last = chosen[0].first.entry, chosen[-1].last.entry
            omit = omit_of(policy, moment_of(first), moment_of(last), now_ms)
            try:
                written = archive.replace(partition, chosen, omit, judged(policy, now_ms))
            except SegmentDamaged as error:
                damage[error.sha256] = str(error)
                continue
            fresh.add(written.sha256)
            rewritten += len(chosen)
        archive.clean(partition, damage)
        if damage:
            raise ArchiveDamaged("; ".join(damage.values()))
        return rewritten

    def _next(
        self, runs: Sequence[Sequence[Segment]], policy: Policy, fresh: set[str], now_ms: int
    ) -> Sequence[Segment]:
        """Return the neighbours to write anew next; nothing if all are as they should be."""
        for segments in runs:
            sizes = [Size(one.count, one.raw) for one in segments]
            chosen = choose(sizes, self._settings.segment_events)
            if chosen is not None:
                return segments[chosen.start : chosen.stop]
        old = (one for segments in runs for one in segments if one.sha256 not in fresh)
        concerned = (one for one in old if policy.concerns(seen(one), now_ms))
        return [one] if (one := next(concerned, None)) else []


def _sound(
    archive: Archive, partition: int, damaged: Collection[str]
) -> Sequence[Sequence[Segment]]:
    """Return a partition's segments, but for those that cannot be read: each run of neighbours."""
    runs = groupby(archive.segments(partition), lambda one: one.sha256 in damaged)
    return [list(run) for is_damaged, run in runs if not is_damaged]
