"""A lane: one provider, one partition. What it owns, where it stands, how it reads and commits.

Live, catch-up and replay are the same lane with another starting point and another instance.
"""

import logging
from collections.abc import Sequence
from itertools import pairwise

import msgspec
from memorybus import scripts
from memorybus.errors import LeaseLost
from memorybus.keys import Keys
from memorybus.log import START, EventLog
from memorybus.logged import LoggedEvent
from memorybus.scripts import Acquired, Checkpoint
from memorybus.settings import Settings
from memorybus.testing import CrashPoint
from redis import Redis

from memorybus_workers.answers import Answers
from memorybus_workers.deadletter import BEHIND, Parked
from memorybus_workers.leases import Lease, Leases
from memorybus_workers.window import Begin, Window

_log = logging.getLogger("memorybus")

STEP_BACK = 5_000
"""A store's checkpoint so far above Redis's is not followed: its ledger knows what comes again."""

KILLS = 2
"""Workers that one event may end, tried alone, before it is parked (G6)."""


class Links(msgspec.Struct, frozen=True):
    """What the lanes of one provider instance share."""

    provider: str
    redis: Redis
    log: EventLog
    leases: Leases
    settings: Settings
    crash: CrashPoint
    entries_read: bool
    answers: Answers


class Lane:
    """One owned lane. Belongs to the provider's thread.

    Attributes:
        partition: which one.
        epoch: our fencing token.
        lease: our ownership.
        parked: its parked keys.
        answers: tells those who wait what became of their events.
        window: what is read and not yet done.
        doubt: the highest n that a former owner may have handed to the provider.
        more: whether the log may hold more than the last `read` returned.
    """

    def __init__(self, links: Links, partition: int, lease: Lease, checkpoint: Acquired) -> None:
        """Take over; `begin` says where it goes on.

        Raises:
            redis.RedisError: Redis is away.
        """
        self.partition = partition
        self.epoch = lease.epoch
        self.lease = lease
        self.checkpoint = checkpoint
        self.crash = links.crash
        self._links = links
        self._keys = Keys(links.settings.namespace)
        self._place = (self._keys, partition, links.provider, lease.epoch)
        self.answers = links.answers
        self.parked = Parked(links.redis, *self._place, lease.worker, links.answers.refused)
        self._careful_upto = -1
        self.more = False

    def begin(self, begin: Begin, suspects: int) -> None:
        """Go on there.

        Args:
            begin: the checkpoint and what is done above it.
            suspects: how many events above what is done may have been under way when an owner
                died: these go one by one.

        Raises:
            LogUnavailable: Redis is away.
        """
        settings, checkpoint = self._links.settings, self.checkpoint
        begin = self._within_log(begin)
        self.window = Window(begin, settings.window)
        self.doubt = max(checkpoint.sent, begin.n + begin.done.bit_length() + 1)
        if suspects:
            known = begin.n + begin.done.bit_length()
            self._careful_upto = min(known + suspects, checkpoint.head)  # later ones killed nobody
        self._committed = Checkpoint(checkpoint.entry, checkpoint.n, checkpoint.done)
        self.crash("lane.after_acquire")

    def _within_log(self, begin: Begin) -> Begin:
        """Return a place that the log has, at or before what the provider or Redis says.

        Redis may have come back without its last second: without events, without what was committed
        and put aside then, or without one of these. What is read again is known to the ledger, or
        marked in the log as come again, or in doubt (G4).
        """
        checkpoint = self.checkpoint
        if 0 < begin.n - checkpoint.n <= STEP_BACK:
            begin = Begin(checkpoint.entry, checkpoint.n)  # dead letters may be lost up to there
        if begin.entry == START or self._links.log.has(self.partition, begin.entry):
            return begin  # at the beginning, or behind what is missing there
        found = self._surviving(begin)
        _log.warning(
            "%s: the log does not have the checkpoint %d: it lost its tail, or was trimmed, or the "
            "store served another log; going on behind %d",
            self,
            begin.n,
            found.n,
        )
        return found

    def _surviving(self, begin: Begin) -> Begin:
        """Return the last place before a checkpoint that the log still has."""
        log, checkpoint = self._links.log, self.checkpoint
        before = log.before(self.partition, begin.entry)
        if before is not None and before.position.n < begin.n:
            return Begin(before.position.entry, before.position.n)
        after = log.read(self.partition, begin.entry, 1)
        if not after or after[0].position.n > begin.n:
            return begin  # trimmed: what it stood for is done
        return Begin(START, 0) if begin.n <= checkpoint.n else Begin(checkpoint.entry, checkpoint.n)

    @property
    def n(self) -> int:
        """The checkpoint's dense number."""
        return self.window.n

    def __str__(self) -> str:
        """Name it for people."""
        return f"{self._links.provider}, partition {self.partition}"

    # -- reading ----------------------------------------------------------------------------------

    def read(self, most: int) -> Sequence[LoggedEvent]:
        """Read on: events with consecutive numbers, also done ones; none if the window is full.

        Raises:
            LeaseLost: the log lost its tail.
            LogUnavailable: Redis is away.
        """
        window = self.window
        count = min(most, window.room())
        self.more = False
        if not count:
            return ()
        log = self._links.log
        events: Sequence[LoggedEvent]
        events = log.read(self.partition, window.read_entry, count, after_n=window.read_n)
        if events and events[0].position.n != window.read_n + 1:
            if not window.at_rest:
                return ()  # first what is open
            self._look_back(events[0].position.n)
            window.jump(events[0].position.n - 1)
        self.crash("lane.after_read")
        found = consecutive(events)
        self.more = len(events) == count or len(found) < len(events)
        return found

    def catch_up(self) -> bool:
        """Read again what was skipped of one key whose turn it is; return whether there was any.

        Raises:
            LeaseLost: the lane has another owner.
            LogUnavailable: Redis is away.
        """
        window = self.window
        found = window.hungry()
        if found is None:
            return False
        key, (entry, n) = found
        links = self._links
        events = links.log.read(self.partition, entry, links.settings.batch, after_n=n)
        parked = key in self.parked.keys
        if parked:
            mine = [e for e in events if e.envelope.key == key and e.position.n <= window.read_n]
            self.parked.put_aside([e for e in mine if not window.is_done(e.position.n)], BEHIND)
        window.feed(events, keep=not parked)
        return True

    def _look_back(self, n: int) -> None:
        """The next entry is not the one after the checkpoint: a lost tail, or a gap.

        Raises:
            LeaseLost: the log gives our numbers again and has our checkpoint no more: begin anew.
        """
        window = self.window
        if n > window.n:
            _log.error("%s: after %d comes %d; events between are lost", self, window.n, n)
        elif not self._links.log.has(self.partition, window.entry):
            raise LeaseLost(f"{self}: the log lost its tail")

    # -- committing -------------------------------------------------------------------------------

    def commit(self, sent: int | str = "") -> None:
        """Commit the window's progress, if there is any.

        Args:
            sent: the highest n that may be handed to the provider from now on (``lookup``). What a
                former owner may have handed over stays in doubt until the checkpoint is above it.

        Raises:
            LeaseLost: the lane has another owner.
            redis.RedisError: Redis is away; the next commit says it again.
        """
        window = self.window
        if sent != "":
            sent = max(int(sent), self.doubt)
        now = Checkpoint(window.entry, window.n, window.done(), sent)
        if now == self._committed:
            return
        links = self._links
        call = scripts.commit(*self._place, now, entries_read=links.entries_read)
        if not scripts.run(links.redis, call):
            links.leases.drop(self.lease)
            raise LeaseLost(f"{self}: epoch {self.epoch}")
        self._committed = Checkpoint(now.entry, now.n, now.done)
        self.crash("lane.after_commit")

    def check(self, room: float = 0.0) -> None:
        """Make sure that the lane is still ours, for `room` seconds at least.

        Raises:
            LeaseLost: it is not, or nobody knows.
        """
        self._links.leases.check(self.lease, room)

    # -- what may kill a worker -------------------------------------------------------------------

    def chunk(self, most: int) -> int:
        """Return how many events may go into one chunk, of `most` otherwise."""
        return 1 if self.careful else most

    @property
    def careful(self) -> bool:
        """Whether events go alone: owners died before the checkpoint had passed a certain place."""
        return self.window.n < self._careful_upto

    def kills(self, n: int) -> int:
        """Note that an event is tried alone; return how many workers it has ended, 0 if it may go.

        Raises:
            LeaseLost: the lane has another owner.
            redis.RedisError: Redis is away.
        """
        tries = self._trying(n, 1)
        return tries - 1 if tries > KILLS else 0

    def survived(self, n: int) -> None:
        """Note that a try of an event is over, however it ended: it did not end the worker.

        Raises:
            LeaseLost: the lane has another owner.
            redis.RedisError: Redis is away.
        """
        self._trying(n, -1)

    def _trying(self, n: int, step: int) -> int:
        call = scripts.trying(*self._place, n, step)
        tries = int(scripts.run(self._links.redis, call))
        if tries < 0:
            raise LeaseLost(f"{self}: epoch {self.epoch}")
        return tries


def consecutive(events: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
    """Return the events up to the first whose number does not follow: it is read again alone."""
    for index, (a, b) in enumerate(pairwise(events), 1):
        if b.position.n != a.position.n + 1:
            return events[:index]
    return events
