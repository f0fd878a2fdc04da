"""Segments written anew: small ones merged, what is kept no longer taken out."""

from collections.abc import Sequence

from memorybus.archive import Archive
from memorybus.manifest import Segment
from memorybus.settings import Settings

from memorybus_workers.compacting import Size, choose
from memorybus_workers.keeping import omit_of, seen
from memorybus_workers.retention import Policy
from memorybus_workers.sealing import moment_of


class Compactor:
    """Rewrites segments of partitions that the caller owns. Belongs to one thread."""

    def __init__(self, settings: Settings) -> None:
        """Rewrite nothing yet."""
        self._settings = settings

    def work(self, archive: Archive, partition: int, policy: Policy, now_ms: int) -> int:
        """Merge what is small, take out what is kept no longer; return how many were rewritten.

        What this pass has written is not looked through again, whatever the clocks say.

        Args:
            archive: the log's.
            partition: whose lane `@archive` is the caller's.
            policy: what is kept.
            now_ms: the server's wall time.

        Raises:
            ArchiveUnavailable: it cannot be reached.
            ArchiveTaken: another archiver was first.
            ArchiveDamaged: a segment cannot be read.
        """
        rewritten = 0
        fresh: set[str] = set()
        while chosen := self._next(archive.segments(partition), policy, fresh, now_ms):
            first, last = chosen[0].first.entry, chosen[-1].last.entry
            omit = omit_of(policy, moment_of(first), moment_of(last), now_ms)
            fresh.add(archive.replace(partition, chosen, omit).sha256)
            rewritten += len(chosen)
        archive.clean(partition)
        return rewritten

    def _next(
        self, segments: Sequence[Segment], policy: Policy, fresh: set[str], now_ms: int
    ) -> Sequence[Segment]:
        """Return the neighbours to write anew next; nothing if all are as they should be."""
        sizes = [Size(one.count, one.raw) for one in segments]
        chosen = choose(sizes, self._settings.segment_events)
        if chosen is not None:
            return segments[chosen.start : chosen.stop]
        old = (one for one in segments if one.sha256 not in fresh)
        concerned = (one for one in old if policy.concerns(seen(one), now_ms))
        return [one] if (one := next(concerned, None)) else []
