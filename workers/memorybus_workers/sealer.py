"""One partition sealed and trimmed: read, publish, note, trim, each only as the lane's owner.

The archive is the truth: what it has and Redis does not know of (a crash in between) is noted
first, so that nothing is sealed twice, and nothing is trimmed that it lacks (G7).
"""

import logging
from collections.abc import Callable, Sequence

import msgspec
from memorybus import scripts
from memorybus.archive import Archive
from memorybus.archive_writing import Omit
from memorybus.clock import Clock
from memorybus.continuity import Gap, Place, lacking
from memorybus.errors import ArchiveDamaged, LeaseLost
from memorybus.inspection import Sight
from memorybus.keys import ARCHIVE_LANE, Keys, lane_name
from memorybus.log import START, read_entries
from memorybus.losses import Loss, Losses
from memorybus.manifest import Segment
from memorybus.plain import iso
from memorybus.sealed import Part, SealReports, seal
from memorybus.segments import RawEntry
from memorybus.settings import Settings
from memorybus.testing import CrashPoint
from redis import Redis

from memorybus_workers import sealing
from memorybus_workers.keeping import omit_of
from memorybus_workers.leases import Lease, Leases
from memorybus_workers.retention import Policy
from memorybus_workers.sealing import Numbered, moment_of

_log = logging.getLogger("memorybus")

_NEVER = 2**52
"""Milliseconds of a hot window that trims nothing."""


class Around(msgspec.Struct, frozen=True):
    """What sealing needs; all of it belongs to the archiver's thread.

    Attributes:
        redis: a client of its own: a slow answer delays nobody else.
        settings: see `Settings`.
        clock: time.
        leases: of the lanes `@archive`.
        crash: named places to die at.
        entries_read: whether the server's consumer groups count entries read.
        stopping: whether this process was told to end.
        progress: called after each segment, for who wants to show that something happens.
    """

    redis: Redis
    settings: Settings
    clock: Clock
    leases: Leases
    crash: CrashPoint
    entries_read: bool
    stopping: Callable[[], bool] = lambda: False
    progress: Callable[[], None] = lambda: None


class Owned(msgspec.Struct, frozen=True):
    """A partition whose lane `@archive` is ours, and the log's archive."""

    partition: int
    lease: Lease
    archive: Archive
    log_id: str


class Sealer:
    """Seals and trims partitions. Belongs to one thread."""

    def __init__(self, around: Around) -> None:
        """Use the archiver's surroundings."""
        self._around = around
        self._keys = Keys(around.settings.namespace)
        self._losses = Losses(around.redis, self._keys)
        self._reports = SealReports(around.redis, self._keys)

    def own(self, archive: Archive, log_id: str, partition: int) -> Owned | None:
        """Take a partition's lane; None if another archiver has it."""
        around = self._around
        taken = around.leases.acquire(around.redis, ARCHIVE_LANE, partition)
        return Owned(partition, taken[0], archive, log_id) if taken else None

    def leave(self, owned: Owned) -> None:
        """Give the lane up."""
        self._around.leases.release(self._around.redis, [owned.lease])

    def work(self, owned: Owned, sight: Sight, policy: Policy, *, force: bool = False) -> int:
        """Seal and trim what may be; return how many events were sealed.

        Args:
            owned: the partition.
            sight: how it was seen.
            policy: what is kept.
            force: seal a segment however small.

        Raises:
            ArchiveDamaged: the archive lacks what was sealed: nothing is done.
            ArchiveUnavailable: it cannot be reached.
            GivenTwice: the log's numbers cannot be put in one order.
            LeaseLost: the partition has another owner by now.
            redis.RedisError: Redis is away.
        """
        found = owned.archive.end(owned.partition)
        end = Place(found.entry, found.n) if found else None
        self._check_behind(owned, sight, end)
        if end is not None:
            self._note(owned, end)
        sealed = 0
        while taken := self._ready(owned, sight, end, force=force):
            bounds = moment_of(taken[0].entry), moment_of(taken[-1].entry)
            segment = self._sealed(owned, taken, end, omit_of(policy, *bounds, sight.now_ms))
            self._around.progress()
            sealed, end = sealed + segment.count, Place(segment.last.entry, segment.last.n)
        return sealed

    def count(self, owned: Owned) -> None:
        """Write down what the archive has of a partition."""
        segments = owned.archive.segments(owned.partition)
        part = Part(
            segments=len(segments),
            events=sum(one.count for one in segments),
            bytes=sum(one.bytes for one in segments),
            first_at=sealing.moment_of(segments[0].first.entry) if segments else 0,
        )
        self._reports.count(owned.partition, part)

    def _check_behind(self, owned: Owned, sight: Sight, end: Place | None) -> None:
        view = sight.view
        gap = lacking(owned.partition, view.sealed, end, view.first)
        if gap is not None:
            state = self._keys.state(owned.partition)
            raise ArchiveDamaged(
                f"the archive lacks events {gap.first} to {gap.last} of partition "
                f"{lane_name(owned.partition)}, which were sealed: mount it or restore its backup; "
                f"if they are lost for good, let the rest go on with: redis-cli hset {state} "
                f"sealed {gap.first - 1}"
            )

    def _ready(
        self, owned: Owned, sight: Sight, end: Place | None, *, force: bool
    ) -> Sequence[Numbered]:
        """Return what makes the next segment; nothing if none is ready, or we were told to end."""
        settings = self._around.settings
        if self._around.stopping():
            return ()
        cutoff = sight.now_ms - round(settings.seal_after * 1000)
        taken, full = self._gathered(owned.partition, end or Place(START, 0), cutoff)
        return taken if taken and (full or force or self._is_old(taken[0], sight)) else ()

    def _is_old(self, first: Numbered, sight: Sight) -> bool:
        age = sight.now_ms - sealing.moment_of(first.entry)
        return age >= self._around.settings.segment_age * 1000

    def _gathered(
        self, partition: int, after: Place, cutoff: int
    ) -> tuple[Sequence[Numbered], bool]:
        """Read the entries of one segment, page by page; say whether it is full."""
        taken: list[Numbered] = []
        size, entry, n = 0, after.entry, after.n
        key = self._keys.log(partition)
        while count := sealing.room(taken, size, self._around.settings):
            found = read_entries(self._around.redis, key, f"({entry}", str(cutoff), count=count)
            page = [(name.decode(), fields) for name, fields in found]
            taken += sealing.numbered(page, n)
            size += sum(len(part) for _, fields in page for part in fields)
            if len(page) < count:
                return sealing.whole(taken), False
            entry, n = taken[-1].entry, taken[-1].n if not taken[-1].stray else n
        return sealing.whole(taken) or taken, True

    def _sealed(
        self, owned: Owned, taken: Sequence[Numbered], end: Place | None, omit: Omit | None
    ) -> Segment:
        """Publish one segment behind the archive's end, note it, trim."""
        self._record(owned, sealing.holes(owned.partition, end.n if end else 0, taken))
        self._check(owned)
        rows = [RawEntry(one.entry, one.n, one.fields) for one in taken]
        segment = owned.archive.publish(owned.partition, rows, omit)
        self._around.crash("archiver.after_publish")
        self._note(owned, Place(segment.last.entry, segment.last.n))
        self._around.crash("archiver.after_seal")
        return segment

    def _record(self, owned: Owned, gaps: list[Gap]) -> None:
        """Write down what was lost before it could be sealed: behind the seal nobody would tell."""
        for gap in gaps:
            _log.error("DATA LOSS: %s, and were never sealed", gap.told)
            now = iso(self._around.clock.now_ms()) or ""
            self._losses.record(Loss("gap", owned.log_id, now, [gap]))

    def _check(self, owned: Owned) -> None:
        """Make sure that the partition is still ours, here and in Redis (G5)."""
        self._around.leases.check(owned.lease)
        epoch = self._around.redis.hget(owned.lease.lane, "epoch")
        if epoch != b"%d" % owned.lease.epoch:
            self._lost(owned)

    def _note(self, owned: Owned, end: Place) -> None:
        """Write down the archive's end, and trim below it."""
        hot = round(self._around.settings.hot_window * 1000)
        call = seal(
            self._keys,
            owned.partition,
            owned.lease.epoch,
            end.entry,
            end.n,
            min(hot, _NEVER),
            entries_read=self._around.entries_read,
        )
        if scripts.run(self._around.redis, call) < 0:
            self._lost(owned)

    def _lost(self, owned: Owned) -> None:
        self._around.leases.drop(owned.lease)
        raise LeaseLost(f"{owned.lease.key} has another owner")
