"""A lane: one provider, one partition. Read from the checkpoint, apply, commit; nothing else.

Live, catch-up and replay are this loop with another starting point and another instance.
"""

import logging
from collections.abc import Iterator, Sequence

from memorybus import scripts
from memorybus.errors import LeaseLost
from memorybus.events import Position
from memorybus.keys import Keys
from memorybus.log import EventLog
from memorybus.logged import LoggedEvent
from memorybus.scripts import Acquired
from memorybus.testing import CrashPoint
from memorybus_providers.base import Progress
from redis import Redis

from memorybus_workers.applier import Applier
from memorybus_workers.deadletter import Parked
from memorybus_workers.leases import Lease, Leases

_log = logging.getLogger("memorybus")


class Lane:
    """One owned lane. Belongs to the provider's thread.

    Attributes:
        partition: which one.
        epoch: our fencing token.
        parked: its parked keys.
        entry: the checkpoint.
        n: the checkpoint's dense number.
    """

    def __init__(
        self,
        provider: str,
        partition: int,
        *,
        redis: Redis,
        log: EventLog,
        leases: Leases,
        lease: Lease,
        checkpoint: Acquired,
        applier: Applier,
        batch: int,
        entries_read: bool,
        crash: CrashPoint,
    ) -> None:
        """Take over: claim the lane in the provider's store and find where to go on.

        Raises:
            LeaseLost: a newer owner was here already.
            ProviderError: the provider's store cannot be used now.
        """
        self.provider = provider
        self.partition = partition
        self.epoch = lease.epoch
        self.lease = lease
        self._redis = redis
        self._log = log
        self._leases = leases
        self._applier = applier
        self._batch = batch
        self._entries_read = entries_read
        self._crash = crash
        self._keys = Keys(log.keys.namespace)
        self.parked = Parked(redis, self._keys, partition, provider, lease.epoch)
        begin = self._within_log(applier.begin(self, checkpoint), checkpoint)
        self.entry, self.n = begin.entry, begin.n

    def _within_log(self, progress: Progress, checkpoint: Acquired) -> Progress:
        """Step back to the checkpoint in Redis if the log no longer has the provider's.

        The log lost its tail then, and the checkpoint beside it was lost with it, so that one is
        still true; the provider's ledger knows what comes again (G4).
        """
        if progress.n <= checkpoint.n or self._log.has(self.partition, progress.entry):
            return progress
        _log.warning(
            "%s, partition %d: the log lost its tail: going back from %d to %d",
            self.provider,
            self.partition,
            progress.n,
            checkpoint.n,
        )
        return Progress(progress.epoch, checkpoint.entry, checkpoint.n)

    def step(self) -> bool:
        """Apply one batch; return whether there may be more.

        Raises:
            LeaseLost: the lane has another owner.
            Unavailable: the backend is down; the checkpoint stands.
            LogUnavailable: Redis is away.
        """
        self.check()
        events = self._log.read(self.partition, self.entry, self._batch, after_n=self.n)
        if events and events[0].position.n != self.n + 1:
            self._look_back(events[0].position.n)
        for chunk in _chunks(events, self._applier.chunk):
            self._crash("lane.before_apply")
            self._applier.apply(self, chunk)
            self._crash("lane.after_apply")
            self._commit(chunk[-1].position)
            self._crash("lane.after_commit")
        return len(events) == self._batch

    def _look_back(self, n: int) -> None:
        """The next entry is not the one after the checkpoint: a lost tail, or a gap.

        Raises:
            LeaseLost: the log no longer has our checkpoint: begin again.
        """
        if self.n and not self._log.has(self.partition, self.entry):
            raise LeaseLost(f"{self.provider}, partition {self.partition}: the log lost its tail")
        if n > self.n:
            _log.error(
                "%s, partition %d: after %d comes %d; events between are not in the log",
                self.provider,
                self.partition,
                self.n,
                n,
            )

    def _commit(self, position: Position) -> None:
        call = scripts.commit(
            self._keys,
            self.partition,
            self.provider,
            self.epoch,
            position.entry,
            position.n,
            entries_read=self._entries_read,
        )
        if not scripts.run(self._redis, call):
            self._leases.drop(self.lease)
            raise LeaseLost(f"{self.provider}, partition {self.partition}: epoch {self.epoch}")
        self.entry, self.n = position.entry, position.n

    def check(self, room: float = 0.0) -> None:
        """Make sure that the lane is still ours, for `room` seconds at least.

        Raises:
            LeaseLost: it is not, or nobody knows.
        """
        self._leases.check(self.lease, room)


def _chunks(events: Sequence[LoggedEvent], size: int) -> Iterator[Sequence[LoggedEvent]]:
    if len(events) <= size:
        return iter([events] if events else [])
    return (events[i : i + size] for i in range(0, len(events), size))
