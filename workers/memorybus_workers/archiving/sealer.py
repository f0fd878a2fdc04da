"""Seals and trims one partition; each step is made only while this worker owns the lane.

The archive decides what is sealed. If it has events of which Redis does not know (after a crash),
this is noted in Redis first. So nothing is sealed twice, and nothing is trimmed that the archive
lacks (G7).
"""

import logging
from collections.abc import Callable, Sequence

import msgspec
from memorybus.archive.agreement import ArchiveComparer
from memorybus.archive.archive import Archive
from memorybus.archive.format.manifest import Segment
from memorybus.archive.format.parquet import RawEntry
from memorybus.archive.seals import ArchivedPart, SealReports
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import ArchiveDamaged, ArchiveTaken, LeaseLost, LogError
from memorybus.log import continuity
from memorybus.log.entry import Place, entry_ms
from memorybus.log.inspection import PartitionState
from memorybus.log.losses import Losses, lost_gap
from memorybus.log.stream import START, check_log_id, read_entries
from memorybus.redis import scripts
from memorybus.redis.keys import ARCHIVE_LANE, Keys, lane_name
from memorybus.testing import CrashPoint
from memorybus.text.display import iso
from redis import Redis

from memorybus_workers.archiving import due
from memorybus_workers.archiving.renumbering import Renumbering, RepeatedNumbers
from memorybus_workers.archiving.retention import Policy, build_omission_filter, judgement_of
from memorybus_workers.lanes.leases import Lease, Leases

_log = logging.getLogger("memorybus")
_KEEP_ALL_MS = 2**52  # milliseconds of a hot window that trims nothing


class SealingContext(msgspec.Struct, frozen=True):
    """What sealing needs; all of it belongs to the archiver's thread."""

    redis: Redis  # a client that nothing else uses, so that a slow answer delays nothing else
    settings: Settings  # see `Settings`
    clock: Clock  # time
    leases: Leases  # the leases of the lanes `@archive`
    crash: CrashPoint  # named places to die at
    stopping: Callable[[], bool] = lambda: False  # whether this process was told to end
    # called after each segment, to show that the work goes on
    progress: Callable[[], None] = lambda: None


class OwnedPartition(msgspec.Struct, frozen=True):
    """A partition whose lane `@archive` is ours, and the log's archive."""

    partition: int
    lease: Lease
    archive: Archive
    log_id: str

    @property
    def epoch(self) -> int:
        return self.lease.lane.epoch


class Sealer:
    """Seals and trims partitions. Belongs to one thread."""

    def __init__(self, context: SealingContext) -> None:
        self._context = context
        self._keys = Keys(context.settings.namespace)
        self._losses = Losses(context.redis, self._keys)
        self._reports = SealReports(context.redis, self._keys)
        self._renumbering = Renumbering(context.redis, self._keys)

    def acquire(self, archive: Archive, log_id: str, partition: int) -> OwnedPartition | None:
        context = self._context
        lease = context.leases.acquire(context.redis, ARCHIVE_LANE, partition)
        if lease is None:
            return None
        owned = OwnedPartition(partition, lease, archive, log_id)
        try:
            check_log_id(context.redis, self._keys, log_id)
        except LogError:
            self.release(owned)
            raise
        return owned

    def release(self, owned: OwnedPartition) -> None:
        self._context.leases.release(self._context.redis, [owned.lease])

    def work(
        self, owned: OwnedPartition, state: PartitionState, policy: Policy, *, force: bool = False
    ) -> int:
        end = owned.archive.end(owned.partition)
        compared = self._compare_with_log(owned, state, end) if end else START
        self._check_nothing_lacks(owned, state, end)
        if isinstance(compared, RepeatedNumbers):
            return self._renumber(owned, compared)
        if end is not None:
            self._write_end(owned, end, compared)
        try:
            return self._seal_ready(owned, state, policy, end, force=force)
        except due.NumbersGivenTwice as error:  # events that came while this was compared
            end = owned.archive.end(owned.partition) or Place(START, 0)
            return self._renumber(owned, RepeatedNumbers(error.n, end.entry, end))

    def _seal_ready(
        self,
        owned: OwnedPartition,
        state: PartitionState,
        policy: Policy,
        end: Place | None,
        *,
        force: bool,
    ) -> int:
        sealed = 0
        while taken := self._gather_if_ready(owned, state, end, force=force):
            self._record_gaps(owned, due.find_gaps(owned.partition, end.n if end else 0, taken))
            segment = self._seal(owned, taken, policy, state.now_ms)
            self._context.progress()
            sealed, end = sealed + segment.count, segment.last
        return sealed

    def _compare_with_log(
        self, owned: OwnedPartition, state: PartitionState, end: Place
    ) -> str | RepeatedNumbers:
        """Return the log's last entry before the archive's end; all entries up to it are sealed."""
        comparing = ArchiveComparer(self._context.redis, self._keys, owned.archive)
        noted = Place(state.view.sealed_at or START, state.view.sealed)
        agreement = comparing.compare(owned.partition, noted, end)
        if agreement.lacking is not None:
            return RepeatedNumbers(agreement.lacking.n, agreement.upto, end)
        repeated = None if noted == end else self._renumbering.find_behind(owned.partition, end)
        return repeated or agreement.upto

    def _renumber(self, owned: OwnedPartition, repeated: RepeatedNumbers) -> int:
        """Give repeated numbers anew; return 0, because nothing is sealed."""
        self._check_ownership(owned)
        self._renumbering.mend(owned.lease.lane, owned.archive, repeated)
        _log.warning(
            "partition %s: Redis came back older than its archive and gave numbers twice, from %d "
            "on; its events have new ones behind the archive's end",
            lane_name(owned.partition),
            repeated.first,
        )
        return 0

    def write_counts(self, owned: OwnedPartition) -> None:
        self._check_ownership(owned)
        segments = owned.archive.segments(owned.partition)
        part = ArchivedPart(
            segments=len(segments),
            events=sum(segment.count for segment in segments),
            bytes=sum(segment.bytes for segment in segments),
            first_at=entry_ms(segments[0].first.entry) if segments else 0,
        )
        self._reports.write_part(owned.partition, part)

    def _check_nothing_lacks(
        self, owned: OwnedPartition, state: PartitionState, end: Place | None
    ) -> None:
        view = state.view
        gap = continuity.find_lost_archive(owned.partition, view.sealed, end, view.first)
        if gap is not None:
            key = self._keys.state(owned.partition)
            raise ArchiveDamaged(
                f"the archive lacks events {gap.first} to {gap.last} of partition "
                f"{lane_name(owned.partition)}, which were sealed: mount it or restore its backup; "
                f"if they are lost for good, let the rest continue with: redis-cli hset {key} "
                f"sealed {gap.first - 1}"
            )

    def _gather_if_ready(
        self, owned: OwnedPartition, state: PartitionState, end: Place | None, *, force: bool
    ) -> Sequence[RawEntry]:
        """Return the entries of the next segment; none if it is not ready or we must end."""
        settings = self._context.settings
        if self._context.stopping():
            return ()
        cutoff = state.now_ms - round(settings.seal_after * 1000)
        taken, full = self._gather(owned.partition, end or Place(START, 0), cutoff)
        return taken if taken and (full or force or self._is_old(taken[0], state)) else ()

    def _is_old(self, first: RawEntry, state: PartitionState) -> bool:
        age = state.now_ms - entry_ms(first.entry)
        return age >= self._context.settings.segment_age * 1000

    def _gather(self, partition: int, after: Place, cutoff: int) -> tuple[Sequence[RawEntry], bool]:
        taken: list[RawEntry] = []
        size, entry, n = 0, after.entry, after.n
        key = self._keys.log(partition)
        while count := due.next_page_size(taken, size, self._context.settings):
            entries = read_entries(self._context.redis, key, f"({entry}", str(cutoff), count=count)
            page = due.number_entries([(name.decode(), fields) for name, fields in entries], n)
            taken += page
            size += sum(len(part) for raw_entry in page for part in raw_entry.fields)
            if len(entries) < count:
                return taken, False
            entry, n = entries[-1][0].decode(), taken[-1].n if taken else n
        return taken, True

    def _seal(
        self, owned: OwnedPartition, taken: Sequence[RawEntry], policy: Policy, now_ms: int
    ) -> Segment:
        self._check_ownership(owned)
        omit = build_omission_filter(
            policy, entry_ms(taken[0].entry), entry_ms(taken[-1].entry), now_ms
        )
        segment = owned.archive.publish(owned.partition, taken, omit, judgement_of(policy, now_ms))
        if segment.first.entry != taken[0].entry:
            raise ArchiveTaken(f"{owned.archive.where} continues behind {taken[0].entry}")
        self._context.crash("archiver.after_publish")
        self._write_end(owned, segment.last, segment.last.entry)
        self._context.crash("archiver.after_seal")
        return segment

    def _record_gaps(self, owned: OwnedPartition, gaps: list[continuity.Gap]) -> None:
        """Record events that were lost before they were sealed: the gap would not show later."""
        for gap in gaps:
            _log.error("DATA LOSS: %s, and were never sealed", gap)
            now = iso(self._context.clock.now_ms())
            self._losses.note([lost_gap("gap", owned.log_id, gap, now)])

    def _check_ownership(self, owned: OwnedPartition) -> None:
        self._context.leases.check(owned.lease)
        lane = owned.lease.lane
        if self._context.redis.hget(lane.key, "epoch") != b"%d" % lane.epoch:
            self._raise_lost(owned)

    def _write_end(self, owned: OwnedPartition, end: Place, known: str) -> None:
        """Write the archive's end to Redis, and trim the log below it."""
        hot = round(self._context.settings.hot_window * 1000)
        call = scripts.seal(
            owned.lease.lane,
            end.entry,
            end.n,
            min(hot, _KEEP_ALL_MS),
            known=known,
        )
        try:
            unknown = scripts.run(self._context.redis, call)
        except LeaseLost:
            self._context.leases.drop(owned.lease)
            raise
        if unknown is not None:
            raise ArchiveTaken(f"an event came in behind {known}, before the archive's end")

    def _raise_lost(self, owned: OwnedPartition) -> None:
        self._context.leases.drop(owned.lease)
        raise LeaseLost(f"{owned.lease.key} has another owner")
