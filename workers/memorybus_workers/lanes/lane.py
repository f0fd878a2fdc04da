"""A lane: one provider and one partition. It reads events, and commits what was done.

Live, catch-up and replay are the same lane with another start point and another instance.
"""

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial

import msgspec
from memorybus.errors import LeaseLost
from memorybus.history.history import History
from memorybus.history.log_reader import EventPage
from memorybus.log.entry import LoggedEvent
from memorybus.redis import scripts
from memorybus.redis.keys import Keys
from memorybus.redis.owned_lane import OwnedLane
from memorybus.redis.scripts import AcquiredLane, Checkpoint
from memorybus.registry.lanes import LaneKeys
from redis import Redis

from memorybus_workers.lanes.answers import Answers
from memorybus_workers.lanes.context import InstanceContext
from memorybus_workers.lanes.isolated_try import TooManyKills, TryBegun, judge_isolated_try
from memorybus_workers.lanes.leases import Lease, WriteFenced
from memorybus_workers.lanes.pace import Pace, count_unfinished
from memorybus_workers.lanes.parking import BEHIND, ParkedKeys
from memorybus_workers.lanes.start_point import StartFinder
from memorybus_workers.lanes.window import LaneWindow, StartPoint

_log = logging.getLogger("memorybus")

LEAP = 2_000
"""From so many numbers on that no span takes, they are skipped instead of read."""

COMMIT_EVERY = 0.01
"""Seconds between two commits of a lane while it has more to do: each is a round trip to Redis."""


class LaneContext(msgspec.Struct, frozen=True):
    """What the lanes of one provider instance share.

    Attributes:
        instance: the instance, in its worker.
        redis: a connection of its own.
        history: archive and log.
        answers: tells those who wait what became of their events.
        pace: how fast the instance may go.
    """

    instance: InstanceContext
    redis: Redis
    history: History
    answers: Answers
    pace: Pace

    @classmethod
    def of(cls, instance: InstanceContext, redis: Redis) -> "LaneContext":
        """Return what the lanes of an instance share; no I/O yet."""
        worker, role = instance.worker, instance.role
        lanes = LaneKeys(redis, worker.settings)
        count = partial(count_unfinished, lanes, instance.name, role.plan)
        return cls(
            instance,
            redis,
            History.from_settings(redis, worker.settings),
            Answers(redis, instance),
            Pace(worker.clock, role.plan.rate, count),
        )


class Lane:
    """One owned lane. Belongs to the provider's thread.

    Attributes:
        partition: which one.
        epoch: our fencing token.
        lease: our ownership.
        checkpoint: what Redis knew of it when we took it over.
        parked: its parked keys.
        answers: tells those who wait what became of their events.
        window: what is read and not yet done.
        doubt: the highest n that a former owner may have handed to the provider.
        abandoned_calls: calls that were given up and may still take effect.
        more: whether the log may hold more than the last `read` returned.
    """

    def __init__(
        self, context: LaneContext, partition: int, lease: Lease, checkpoint: AcquiredLane
    ) -> None:
        """Take over; `begin` says where it goes on.

        Raises:
            redis.RedisError: Redis is away.
        """
        instance, worker = context.instance, context.instance.worker
        self.partition = partition
        self.epoch = lease.epoch
        self.lease = lease
        self.checkpoint = checkpoint
        self.crash = instance.crash
        self.abandoned_calls = worker.leases.abandoned_calls
        self.answers = context.answers
        self.more = False
        self._name = instance.name
        self._plan = instance.role.plan
        self._settings = worker.settings
        self._leases = worker.leases
        self._redis = context.redis
        self._history = context.history
        self._pace = context.pace
        keys = Keys(worker.settings.namespace)
        self._owned = OwnedLane(keys, partition, self._name, lease.epoch)
        self.parked = ParkedKeys(
            self._redis,
            self._owned,
            lease.worker,
            self.answers.answer_refused,
            self._settings.secrets,
        )
        self._careful_upto = -1
        self._end = self._plan.end(partition)

    def begin(self, point: StartPoint, suspects: int) -> None:
        """Go on at a start point.

        Args:
            point: the checkpoint and what is done above it.
            suspects: how many events above what is done may have been under way when an owner
                died: these are tried one by one.

        Raises:
            LogUnavailable: Redis is away.
        """
        checkpoint = self.checkpoint
        finder = StartFinder(self._history, checkpoint, self.partition, self._name)
        point = finder.find(point)
        self.window = LaneWindow(point, self._settings.window)
        known = point.n + point.done.bit_length()
        self.doubt = max(checkpoint.sent, known + 1)
        if suspects:
            # What came into the log after an owner died cannot have killed it.
            self._careful_upto = min(known + suspects, checkpoint.head)
        self._committed = Checkpoint(checkpoint.entry, checkpoint.n, checkpoint.done)
        self.crash("lane.after_acquire")

    @property
    def highest_repeatable(self) -> int:
        """The highest n that may have been applied before, by an owner that died; -1 for none."""
        return self.doubt if self.checkpoint.deaths else -1

    @property
    def n(self) -> int:
        """The checkpoint's dense number."""
        return self.window.n

    @property
    def ended(self) -> bool:
        """Whether its checkpoint is where its plan ends."""
        return self._plan.ended(self.partition, self.n)

    def __str__(self) -> str:
        """Name it for people."""
        return f"{self._name}, partition {self.partition}"

    # -- reading ----------------------------------------------------------------------------------

    def read(self, most: int) -> Sequence[LoggedEvent]:
        """Return the next events, with consecutive numbers, done ones too; none without room.

        Where the plan leaves an event out, an `Omitted` stands in its place.

        Raises:
            LeaseLost: the log lost its tail.
            LogUnavailable: Redis is away.
            ArchiveError: the archive is needed, and cannot be read.
        """
        window, pace = self.window, self._pace
        count = pace.batch_size(min(most, window.room()))
        self.more = False
        if not count or self._is_over():
            return ()
        self._skip_unplanned()
        page = self._read_page(count)
        events = page.events
        if events and events[0].position.n != window.read_n + 1:
            if not window.at_rest:
                return ()  # what is open comes first
            self._look_back(events[0].position.n)
            window.jump(events[0].position.n - 1)
        self.crash("lane.after_read")
        found = pace.take(_up_to(self._end, _consecutive(events)))
        self.more = page.cut_short or len(found) < len(events)
        return found

    def _read_page(self, count: int) -> EventPage:
        window = self.window
        return self._history.read(
            self.partition, window.read_entry, count, after_n=window.read_n, plan=self._plan
        )

    def _is_over(self) -> bool:
        """Say whether everything that the plan takes is read."""
        return self._end is not None and self.window.read_n >= self._end

    def _skip_unplanned(self) -> None:
        """Skip what no span of the plan takes, if there is so much that reading it costs more."""
        window = self.window
        first = self._plan.next(self.partition, window.read_n + 1)
        if first is None or first - window.read_n <= LEAP or not window.at_rest:
            return
        place = self._history.place(self.partition, first - 1)
        if place is not None and place.n > window.n:
            window.skip_to(place.entry, place.n)
            self.commit()

    def catch_up(self) -> bool:
        """Read again what was skipped of one key whose turn it is; return whether there was any.

        Raises:
            LeaseLost: the lane has another owner.
            LogUnavailable: Redis is away.
        """
        window = self.window
        found = window.key_to_read_again()
        if found is None:
            return False
        key, place = found
        events = self._history.read(
            self.partition, place.entry, self._settings.batch, after_n=place.n, plan=self._plan
        ).events
        parked = key in self.parked.keys
        if parked:
            mine = [e for e in events if e.envelope.key == key and e.position.n <= window.read_n]
            self.parked.put_aside([e for e in mine if not window.is_done(e.position.n)], BEHIND)
        window.take_in_skipped(events, keep=not parked)
        return True

    def _look_back(self, n: int) -> None:
        """Find out why the next entry is not the one after the checkpoint: a lost tail, or a gap.

        Raises:
            LeaseLost: the log gives our numbers again, and our checkpoint's entry is gone.
            ArchiveError: only the archive can tell, and it cannot be read.
        """
        window = self.window
        if n > window.n:
            _log.error("%s: after %d comes %d; events between are lost", self, window.n, n)
        elif not self._history.has(self.partition, window.entry):
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
        now = Checkpoint(window.entry, window.n, window.encoded_done_set(), sent)
        if now == self._committed:
            return
        call = scripts.commit(self._owned, now)
        if isinstance(scripts.run(self._redis, call), scripts.Stale):
            self._leases.drop(self.lease)
            raise WriteFenced(str(self._owned))
        self._committed = Checkpoint(now.entry, now.n, now.done)
        self.crash("lane.after_commit")

    def check(self, room: float = 0.0) -> None:
        """Make sure that the lane is still ours, for `room` seconds at least.

        Raises:
            LeaseLost: it is not, or nobody knows.
        """
        self._leases.check(self.lease, room)

    def extended_for(self, seconds: float) -> AbstractContextManager[None]:
        """Hold the lane for a call of `seconds`, more than any other may take.

        Raises:
            LeaseLost: it is not ours any more, or nobody knows.
        """
        return self._leases.extended_for(self.lease, seconds)

    # -- events that may end a worker --------------------------------------------------------------

    def chunk_size(self, most: int) -> int:
        """Return how many events may go into one chunk, of `most` otherwise."""
        return 1 if self.careful else most

    @property
    def careful(self) -> bool:
        """Whether events are tried one by one, since owners died that may have been at them."""
        return self.window.n < self._careful_upto

    def begin_isolated_try(self, n: int) -> TryBegun | TooManyKills:
        """Note that an event is tried alone, and say whether it may be.

        Raises:
            LeaseLost: the lane has another owner.
            redis.RedisError: Redis is away.
        """
        return judge_isolated_try(self._count_try(n, 1))

    def end_isolated_try(self, n: int) -> None:
        """Note that the try of an event is over, and that it did not end the worker.

        Raises:
            LeaseLost: the lane has another owner.
            redis.RedisError: Redis is away.
        """
        self._count_try(n, -1)

    def _count_try(self, n: int, step: int) -> int:
        tries = scripts.run(self._redis, scripts.note_try(self._owned, n, step))
        if isinstance(tries, scripts.Stale):
            raise WriteFenced(str(self._owned))
        return tries


def _consecutive(events: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
    """Return the events before the first whose number does not follow: it is read again alone."""
    numbers = [event.position.n for event in events]
    if not numbers:
        return events
    first = numbers[0]
    if numbers == list(range(first, first + len(numbers))):
        return events
    return events[: next(i for i, n in enumerate(numbers) if n != first + i)]


def _up_to(end: int | None, events: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
    """Return the consecutive events up to a plan's end; None is no end."""
    if end is None or not events or events[-1].position.n <= end:
        return events
    return [event for event in events if event.position.n <= end]
