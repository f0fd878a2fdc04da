"""A lane: one provider, one partition. What it owns, where it stands, how it reads and commits.

Live, catch-up and replay are the same lane with another starting point and another instance.
"""

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager

import msgspec
from memorybus.config.settings import Settings
from memorybus.errors import LeaseLost
from memorybus.history.history import History
from memorybus.history.log_reader import EventPage
from memorybus.log.entry import LoggedEvent
from memorybus.query.ranges import WHOLE, Plan
from memorybus.redis import scripts
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import Acquired, Checkpoint
from memorybus.testing import CrashPoint
from redis import Redis

from memorybus_workers.lanes.answers import Answers
from memorybus_workers.lanes.intake import consecutive, upto
from memorybus_workers.lanes.leases import Lease, Leases
from memorybus_workers.lanes.pace import Pace
from memorybus_workers.lanes.parking import BEHIND, Parked
from memorybus_workers.lanes.start import Beginning
from memorybus_workers.lanes.window import Begin, Window

_log = logging.getLogger("memorybus")

LEAP = 2_000
"""So many numbers that no span takes are passed over at once."""

COMMIT_EVERY = 0.01
"""Seconds between two commits of a lane while it has more to do: each is a round trip to Redis."""

KILLS = 2
"""Workers that one event may end, tried alone, before it is parked (G6)."""


class Links(msgspec.Struct, frozen=True):
    """What the lanes of one provider instance share."""

    provider: str
    redis: Redis
    history: History
    leases: Leases
    settings: Settings
    crash: CrashPoint
    entries_read: bool
    answers: Answers
    pace: Pace
    plan: Plan = WHOLE


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
        landings: calls that were given up.
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
        self.landings = links.leases.landings
        self._links = links
        self._keys = Keys(links.settings.namespace)
        self._place = (self._keys, partition, links.provider, lease.epoch)
        self.answers = links.answers
        told, secrets = links.answers.refused, links.settings.secrets
        self.parked = Parked(links.redis, *self._place, lease.worker, told, secrets)
        self._careful_upto = -1
        self._end = links.plan.end(partition)
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
        place = (self.partition, self._links.provider)
        begin = Beginning(self._links.history, checkpoint, *place).found(begin)
        self.window = Window(begin, settings.window)
        self.doubt = max(checkpoint.sent, begin.n + begin.done.bit_length() + 1)
        if suspects:
            known = begin.n + begin.done.bit_length()
            self._careful_upto = min(known + suspects, checkpoint.head)  # later ones killed nobody
        self._committed = Checkpoint(checkpoint.entry, checkpoint.n, checkpoint.done)
        self.crash("lane.after_acquire")

    @property
    def n(self) -> int:
        """The checkpoint's dense number."""
        return self.window.n

    @property
    def ended(self) -> bool:
        """Whether its checkpoint is where its plan ends."""
        return self._links.plan.ended(self.partition, self.n)

    def __str__(self) -> str:
        """Name it for people."""
        return f"{self._links.provider}, partition {self.partition}"

    # -- reading ----------------------------------------------------------------------------------

    def read(self, most: int) -> Sequence[LoggedEvent]:
        """Read on: events with consecutive numbers, also done ones; none if the window is full.

        Where the plan leaves an event out, an `Omitted` stands in its place.

        Raises:
            LeaseLost: the log lost its tail.
            LogUnavailable: Redis is away.
            ArchiveError: the archive is needed, and cannot be read.
        """
        window, pace = self.window, self._links.pace
        count = pace.batch(min(most, window.room()))
        self.more = False
        if not count or self._is_over():
            return ()
        self._leap()
        page = self._page(count)
        events = page.events
        if events and events[0].position.n != window.read_n + 1:
            if not window.at_rest:
                return ()  # first what is open
            self._look_back(events[0].position.n)
            window.jump(events[0].position.n - 1)
        self.crash("lane.after_read")
        found = pace.taken(upto(self._end, consecutive(events)))
        self.more = page.cut_short or len(found) < len(events)
        return found

    def _page(self, count: int) -> EventPage:
        window, links = self.window, self._links
        return links.history.read(
            self.partition, window.read_entry, count, after_n=window.read_n, plan=links.plan
        )

    def _is_over(self) -> bool:
        """Say whether everything that the plan takes is read."""
        return self._end is not None and self.window.read_n >= self._end

    def _leap(self) -> None:
        """Pass over what no span of the plan takes, if that is more than reading it would cost."""
        window = self.window
        first = self._links.plan.next(self.partition, window.read_n + 1)
        if first is None or first - window.read_n <= LEAP or not window.at_rest:
            return
        place = self._links.history.place(self.partition, first - 1)
        if place is not None and place.n > window.n:
            window.leap(place.entry, place.n)
            self.commit()

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
        events = links.history.read(
            self.partition, entry, links.settings.batch, after_n=n, plan=links.plan
        ).events
        parked = key in self.parked.keys
        if parked:
            mine = [e for e in events if e.envelope.key == key and e.position.n <= window.read_n]
            self.parked.put_aside([e for e in mine if not window.is_done(e.position.n)], BEHIND)
        window.feed(events, keep=not parked)
        return True

    def _look_back(self, n: int) -> None:
        """The next entry is not the one after the checkpoint: a lost tail, or a gap.

        Raises:
            LeaseLost: our numbers are given again and our checkpoint is nowhere: begin anew.
            ArchiveError: only the archive can tell, and it cannot be read.
        """
        window = self.window
        if n > window.n:
            _log.error("%s: after %d comes %d; events between are lost", self, window.n, n)
        elif not self._links.history.has(self.partition, window.entry):
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

    def room(self, seconds: float) -> AbstractContextManager[None]:
        """Hold the lane for a call of `seconds`, more than any other may take.

        Raises:
            LeaseLost: it is not ours any more, or nobody knows.
        """
        return self._links.leases.room(self.lease, seconds)

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
