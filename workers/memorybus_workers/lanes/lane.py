"""A lane: one provider and one partition. It reads events, and commits its progress."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial

import msgspec
from memorybus.errors import LeaseLost
from memorybus.history.history import History
from memorybus.history.log_reader import EventPage
from memorybus.log.entry import LoggedEvent
from memorybus.log.stream import read_log_id
from memorybus.redis import scripts
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import Checkpoint
from memorybus.registry.lanes import LaneKeys
from redis import Redis

from memorybus_workers.lanes.answers import Answers
from memorybus_workers.lanes.caution import Caution
from memorybus_workers.lanes.context import InstanceContext
from memorybus_workers.lanes.leases import Lease
from memorybus_workers.lanes.pace import Pace, count_unfinished
from memorybus_workers.lanes.parking import BEHIND, ParkedKeys
from memorybus_workers.lanes.start_point import StartFinder
from memorybus_workers.lanes.window import LaneWindow, StartPoint

_log = logging.getLogger("memorybus")
MIN_LEAP = 2_000
"""If more numbers in a row than this belong to no span, they are skipped instead of read."""

COMMIT_EVERY = 0.01
"""Seconds between two commits of a lane while it has more to do: each is a round trip to Redis."""


class LaneContext(msgspec.Struct, frozen=True):
    """The objects that the lanes of one provider instance share. They belong to one log."""

    log_id: str | None  # the log's id; None if it had no record yet
    instance: InstanceContext  # the instance, in its worker
    redis: Redis  # the instance's own connection
    history: History  # archive and log
    answers: Answers  # answers callers that wait for the outcome of their events
    pace: Pace  # limits how fast the instance reads events

    @classmethod
    def of(cls, instance: InstanceContext, redis: Redis) -> "LaneContext":
        worker, role = instance.worker, instance.role
        lanes = LaneKeys(redis, worker.settings)
        count = partial(count_unfinished, lanes, instance.name, role.plan)
        return cls(
            read_log_id(redis, Keys(worker.settings.namespace)),
            instance,
            redis,
            History.from_settings(redis, worker.settings),
            Answers(redis, instance),
            Pace(worker.clock, role.plan.rate, count),
        )


class Lane:
    """One owned lane. Belongs to the provider's thread."""

    def __init__(self, context: LaneContext, lease: Lease) -> None:
        instance, worker = context.instance, context.instance.worker
        self.partition = lease.lane.partition  # the partition
        self.epoch = lease.lane.epoch  # our fencing token
        self.lease = lease  # our ownership
        self._owned = lease.lane
        self.crash = instance.crash
        # calls that were given up and may still take effect
        self.abandoned_calls = worker.leases.abandoned_calls
        self.answers = context.answers  # answers callers that wait for the outcome of their events
        self.more = False  # whether there may be more events than the last `read` returned
        self._name = instance.name
        self._plan = instance.role.plan
        self._settings = worker.settings
        self._leases = worker.leases
        self._redis = context.redis
        self._history = context.history
        self._pace = context.pace
        # its parked keys
        self.parked = ParkedKeys(
            self._redis, lease.lane, self.answers.answer_refused, self._settings.secrets
        )
        self._end = self._plan.end(self.partition)

    def begin(self, point: StartPoint, reach: int) -> None:
        point = StartFinder(self._history, self._owned).find(point)
        self.window = LaneWindow(point, self._settings.window)
        highest_done = point.n + point.done.bit_length()
        self.doubt = max(self._owned.sent, highest_done + 1)
        # An event that came into the log after an owner died cannot have killed it.
        upto = min(highest_done + reach, self._owned.head) if self._owned.deaths else 0
        self._caution = Caution(_decode_notes(self._owned.suspects), upto)
        self._caution.forget(self.window.is_done)
        self._noted = bool(self._owned.suspects)
        self._committed = Checkpoint(self._owned.entry, self._owned.n, self._owned.done)
        self.crash("lane.after_acquire")

    @property
    def highest_repeatable(self) -> int:
        """The highest n that an owner that died may have applied; -1 for none."""
        return self.doubt if self._owned.deaths else -1

    @property
    def set_back_upto(self) -> int:
        """The highest n that former owners may have passed before Redis was set back; 0 for none.

        Redis came back older than its archive. So the checkpoint may be any time behind what was
        applied, and not only by the last moment. A lane that began afterwards had no such owners.
        """
        return self._history.set_back_upto(self.partition) if self._owned.sent else 0

    @property
    def n(self) -> int:
        return self.window.n

    @property
    def ended(self) -> bool:
        return self._plan.ended(self.partition, self.n)

    def __str__(self) -> str:
        return f"{self._name}, partition {self.partition}"

    # -- reading ----------------------------------------------------------------------------------

    def read(self, most: int) -> Sequence[LoggedEvent]:
        """Return the next events, with consecutive numbers, also done ones; none without room."""
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
                return ()  # the open events must be done first
            self._look_back(events[0].position.n)
            self._caution.skip(max(0, events[0].position.n - 1 - window.n))
            window.jump(events[0].position.n - 1)
        self.crash("lane.after_read")
        taken = pace.take(_up_to(self._end, _consecutive(events)))
        self.more = page.cut_short or len(taken) < len(events)
        return taken

    def _read_page(self, count: int) -> EventPage:
        window = self.window
        return self._history.read(
            self.partition, window.read_entry, count, after_n=window.read_n, plan=self._plan
        )

    def _is_over(self) -> bool:
        return self._end is not None and self.window.read_n >= self._end

    def _skip_unplanned(self) -> None:
        """Skip events that belong to no span of the plan, if that is cheaper than reading them."""
        window = self.window
        first = self._plan.next(self.partition, window.read_n + 1)
        if first is None or first - window.read_n <= MIN_LEAP or not window.at_rest:
            return
        place = self._history.place(self.partition, first - 1)
        if place is not None and place.n > window.n:
            window.skip_to(place.entry, place.n)
            self.commit()

    def catch_up(self) -> bool:
        """Read the skipped events of one key again if it is the key's turn; say whether it was."""
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
        """Find out why the next number does not follow the checkpoint: a lost tail, or a gap."""
        window = self.window
        if n > window.n:
            _log.error("%s: after %d comes %d; events between are lost", self, window.n, n)
        elif not self._history.has(self.partition, window.entry):
            raise LeaseLost(f"{self}: the log lost its tail")

    # -- committing -------------------------------------------------------------------------------

    def commit(self, sent: int | str = "") -> None:
        """Commit the window's progress; events up to `sent` may reach the provider from now on."""
        window = self.window
        if sent != "":
            sent = max(int(sent), self.doubt)
        now = Checkpoint(window.entry, window.n, window.encoded_done_set(), sent)
        if now == self._committed:
            return
        try:
            scripts.run(self._redis, scripts.commit(self._owned, now))
        except LeaseLost:
            self._leases.drop(self.lease)
            raise
        self._committed = Checkpoint(now.entry, now.n, now.done)
        self._caution.forget(window.is_done)
        if self._noted and not self.careful:
            self._write_notes()  # nothing is suspected any more
        self.crash("lane.after_commit")

    def check(self, room: float = 0.0) -> None:
        """Make sure that the lane is still ours, for at least `room` seconds."""
        self._leases.check(self.lease, room)

    def extended_for(self, seconds: float) -> AbstractContextManager[None]:
        """Keep the lane for a call of `seconds`, which may be longer than `call_timeout`."""
        return self._leases.extended_for(self.lease, seconds)

    # -- events that may end a worker --------------------------------------------------------------

    @property
    def careful(self) -> bool:
        """Whether each call is noted before it is made, since it may have killed earlier owners."""
        return self._caution.is_needed(self.window.n)

    @property
    def has_suspects(self) -> bool:
        """Whether there are events that were being called when an owner died."""
        return bool(self._caution.suspects)

    def batch_size(self, most: int) -> int:
        """Return how many events may go into one batch: `most`, or few if `careful`."""
        return self._caution.batch_size(most) if self.careful else most

    def kills(self, n: int) -> int:
        """Return at how many deaths of owners an event was being called."""
        return self._caution.suspects.get(n, 0)

    def begin_calls(self, numbers: Iterable[int]) -> None:
        """Note what the provider is about to be called for; call it if the lane is `careful`."""
        self._caution.forget(self.window.is_done)
        if self._caution.begin(numbers):
            self._write_notes()

    def survive_calls(self, numbers: Iterable[int]) -> None:
        """Note that calls have returned, which did not end the worker."""
        if self._caution.survive(numbers):
            self._write_notes()

    def _write_notes(self) -> None:
        notes = [_encode_notes(known) for known in (self._caution.calling, self._caution.suspects)]
        try:
            scripts.run(self._redis, scripts.note_tries(self._owned, *notes))
        except LeaseLost:
            self._leases.drop(self.lease)
            raise
        self._noted = any(notes)


def _encode_notes(deaths: Mapping[int, int]) -> bytes:
    return msgspec.json.encode(deaths) if deaths else b""


def _decode_notes(notes: bytes) -> dict[int, int]:
    return msgspec.json.decode(notes, type=dict[int, int]) if notes else {}


def _consecutive(events: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
    """Return the events before the first gap in their numbers; the rest is read again later."""
    numbers = [event.position.n for event in events]
    if not numbers:
        return events
    first = numbers[0]
    if numbers == list(range(first, first + len(numbers))):
        return events
    return events[: next(i for i, n in enumerate(numbers) if n != first + i)]


def _up_to(end: int | None, events: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
    if end is None or not events or events[-1].position.n <= end:
        return events
    return [event for event in events if event.position.n <= end]
