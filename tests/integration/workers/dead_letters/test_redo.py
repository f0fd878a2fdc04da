"""Dead letters on a real server: what operators ask is done in order, once, by the owner alone."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import msgspec
import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.contexts import instance_context
from helpers.stories.scenario import NAME
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import EVENT_GONE, published_event
from memorybus.dead_letters.records import (
    UNREADABLE,
    Amendment,
    LetterBox,
    LetterRequest,
    LetterRequests,
    StoredLetter,
)
from memorybus.errors import LeaseLost, Unavailable
from memorybus.events import DeadLetterResolved, Envelope, Scope, SessionRef, TurnCompleted
from memorybus.history.history import History
from memorybus.ids import new_id
from memorybus.log.entry import LoggedEvent
from memorybus.log.stream import EventLog
from memorybus.redis import scripts
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import OwnedLane
from memorybus.testing import FakeClock
from memorybus.wire.codec import Encoder
from memorybus_workers.dead_letters.redo import DEADLY_REASON, SLICE_SECONDS, Redo
from memorybus_workers.lanes.lane import LaneContext
from memorybus_workers.lanes.parking import BEHIND, Failure, NoteTry, ParkedKeys

A, B = "session:a", "session:b"
STEPS = ("redo.before_apply", "redo.after_apply", "redo.after_settle")
DEATHS = [(step, nth) for step in STEPS for nth in (1, 2, 3)] + [("redo.before_done", 1)]


class Crash(BaseException):
    """The process died here."""


class Backend:
    """A stand-in for an applier: it remembers what it applied, and refuses what it is told to."""

    def __init__(self) -> None:
        self.applied: list[str] = []
        self.refuses: set[str] = set()
        self.down = False
        self.on_call: Callable[[], None] = lambda: None

    def pin_checkpoint(self, lane: Any) -> None:
        """Have no checkpoint of its own."""

    def apply_dead_letter(self, lane: Any, event: LoggedEvent, note_try: NoteTry) -> Failure | None:
        """Apply an event once."""
        refusal = note_try()
        if refusal is not None:
            return refusal
        self.on_call()
        if self.down:
            raise Unavailable("down")
        text: str = event.envelope.event.user
        if text in self.refuses:
            return Failure(f"{text!r} again", 2, "Traceback …", 70, 80)
        if text not in self.applied:
            self.applied.append(text)
        return None


def outgoing(number: int, session: str, text: str) -> scripts.OutgoingEvent:
    """Return a turn on its way into the log."""
    envelope = Envelope(
        id=new_id(),
        key=f"session:{session}",
        scope=Scope(user="ann"),
        session=SessionRef(id=session, root=session),
        at=50,
        event=TurnCompleted(user=text, assistant="ok"),
    )
    body = Encoder(0).envelope(envelope)
    return scripts.OutgoingEvent(number, envelope.id.encode(), b"digest", body)


class FakeLane:
    """A lane that only has what a redo looks at."""

    def __init__(self, parked: ParkedKeys, epoch: int, n: int) -> None:
        self.partition, self.epoch, self.parked = 0, epoch, parked
        self.window = msgspec.defstruct("Window", [("n", int)])(n)

    def check(self, room: float = 0.0) -> None:
        """Be sure of it."""

    def commit(self) -> None:
        """Have nothing to commit."""


class Scene:
    """One lane with parked keys, and whoever owns it."""

    def __init__(self, settings: Settings, clock: FakeClock) -> None:
        self.settings = settings
        self.redis = connect_redis(settings)
        self.keys = Keys(settings.namespace)
        self.backend = Backend()
        self.clock = clock
        self.requests = LetterRequests(self.redis, self.keys, NAME)
        self.box = LetterBox(self.redis, self.keys, 0, NAME)
        self.history = History.from_settings(self.redis, settings)
        self.lives = 0
        self.owner()

    def owner(self, crash: Callable[[str], None] = lambda _: None, *, same: bool = False) -> None:
        """Give the lane to a new owner, also if the last one died, or to the same one again."""
        self.lives += not same
        self.redis.delete(self.keys.lease(0, NAME))
        call = scripts.acquire(self.keys, 0, NAME, "w", 60_000)
        acquired = scripts.run(self.redis, call)
        assert acquired is not None
        self.lane = self.made_lane(acquired.epoch)
        instance = instance_context(
            self.settings, NAME, self.clock, leases=cast("Any", None), crash=crash
        )
        shared = LaneContext.of(instance, self.redis)
        self.redo = Redo(shared, cast("Any", self.backend))

    def made_lane(self, epoch: int) -> FakeLane:
        """Return the lane under an epoch, with its checkpoint past the whole log."""
        n = int(self.redis.hget(self.keys.state(0), "n") or 0)
        owned = OwnedLane(self.keys, 0, NAME, epoch, f"w-{self.lives}")
        return FakeLane(ParkedKeys(self.redis, owned), epoch, n)

    def publish(self, session: str, *texts: str) -> None:
        """Put turns of a session into the log."""
        number = len(self.logged())
        events = [outgoing(number + n, session, text) for n, text in enumerate(texts, 1)]
        call = scripts.append(self.keys, 0, "p", number, events, window_ms=60_000, max_ids=1_000)
        scripts.run(self.redis, call)

    def logged(self) -> list[LoggedEvent]:
        """Return the whole log."""
        return EventLog(self.redis, self.settings).read(0)

    def park(self, session: str, *texts: str) -> None:
        """Publish turns; the first is refused, the others wait behind it."""
        before = len(self.logged())
        self.publish(session, *texts)
        first, *others = self.logged()[before:]
        self.lane.parked.put_aside([first], Failure("refused", 3, "Traceback: why", 10, 20))
        self.lane.parked.put_aside(others, BEHIND)
        self.lane.window.n = first.position.n + len(others)

    def letters(self) -> list[StoredLetter]:
        """Return the dead letters."""
        return list(self.box.all())

    def texts(self) -> list[str]:
        """Return the texts of what waits."""
        events = [
            published_event(self.history, 0, stored.letter).event for stored in self.letters()
        ]
        return [event.envelope.event.user for event in events if event]

    def entry(self, text: str) -> str:
        """Return where a turn stands in the log."""
        return next(
            event.position.entry
            for event in self.logged()
            if getattr(event.envelope.event, "user", None) == text
        )

    def ask(self, action: Any, **fields: Any) -> LetterRequest:
        """Write a request."""
        request = LetterRequest(
            new_id(), 0, action, reason="because", operator="op@host", at=99, **fields
        )
        self.requests.send([request])
        return request

    def work(self) -> None:
        """Let the owner work until it has nothing more to do at once."""
        while self.redo.work({0: cast("Any", self.lane)}):
            pass

    def parked(self) -> dict[bytes, bytes]:
        """Return the parked keys."""
        return cast("dict[bytes, bytes]", self.redis.hgetall(self.keys.parked(0, NAME)))

    def counter(self, name: str) -> int:
        """Return a counter of the lane."""
        return int(self.redis.hget(self.keys.lane(0, NAME), name) or 0)

    def told(self) -> list[DeadLetterResolved]:
        """Return what the log was told of operators' decisions."""
        events = (event.envelope.event for event in self.logged())
        return [event for event in events if isinstance(event, DeadLetterResolved)]


@pytest.fixture
def scene(
    redis_client: redis.Redis, make_settings: MakeSettings, fake_clock: FakeClock
) -> Iterator[Scene]:
    """Return an owned lane without dead letters."""
    made = Scene(make_settings(partitions=1), fake_clock)
    yield made
    made.redis.close()


def test_a_record_says_what_is_needed(scene):
    """G6: a dead letter names its event, its owner, its failure and who put it aside; bounded."""
    scene.publish("a", "one")
    (event,) = scene.logged()
    scene.lane.parked.put_aside([event], Failure("x " * 900, 3, "t" * 9_000 + "end", 10, 20))
    (stored,) = scene.letters()
    letter = stored.letter
    assert (letter.event_id, letter.entry, letter.n) == (event.envelope.id, event.position.entry, 1)
    assert (letter.key, letter.session, letter.type) == (A, "a", "TurnCompleted")
    assert (letter.attempts, letter.first_at, letter.last_at) == (3, 10, 20)
    assert (letter.scope.user, letter.at, letter.worker) == ("ann", event.envelope.at, "w-1")
    assert len(letter.reason) == 500
    assert len(letter.trace) == 4096
    assert letter.trace.endswith("end")


def test_a_reason_that_is_not_unicode_is_kept(scene):
    """G6: a failure whose text holds a lone surrogate still parks its key."""
    scene.publish("a", "one")
    scene.lane.parked.put_aside(scene.logged(), Failure("bad \ud800", 1, "trace \udfff"))
    assert scene.letters()[0].letter.reason == "bad ?"


def test_nothing_asked_is_one_round_trip(make_redis, make_settings):
    """G6: a redo without requests costs one command, also with dead letters there."""
    scene = Scene(make_settings(url=make_redis().url, partitions=1), FakeClock())  # nobody else's
    scene.park("a", "a1")
    before = scene.redis.info("commandstats")
    assert not scene.redo.work({0: cast("Any", scene.lane)})
    after = scene.redis.info("commandstats")
    grown = {name for name, stat in after.items() if stat != before.get(name)}
    assert grown - {"cmdstat_info"} == {"cmdstat_hkeys"}
    scene.redis.close()


def test_a_retry_drains_a_key_in_order(scene):
    """G3, G6: what waits under a key is applied in order, the key is freed, others stay."""
    scene.park("a", "a1", "a2", "a3")
    scene.park("b", "b1")
    scene.ask("retry", keys=(A,))
    scene.work()
    assert scene.backend.applied == ["a1", "a2", "a3"]
    assert scene.texts() == ["b1"]
    assert list(scene.parked()) == [B.encode()]
    assert scene.lane.parked.keys == {B}
    assert scene.counter("parked") == 1
    assert not scene.requests.waiting_fields()
    assert scene.told() == []


def test_what_is_refused_again_waits_on(scene):
    """G3, G6: a letter that fails again holds up the rest of its key, and says how it failed."""
    scene.park("a", "a1", "a2", "a3")
    scene.backend.refuses = {"a2"}
    scene.ask("retry", keys=(A,))
    scene.work()
    assert scene.backend.applied == ["a1"]
    assert scene.texts() == ["a2", "a3"]
    first, second = (stored.letter for stored in scene.letters())
    assert (first.reason, first.attempts) == ("'a2' again", 2)
    assert (first.first_at, first.last_at, first.trace) == (70, 80, "Traceback …")
    assert second.attempts == 0
    assert scene.lane.parked.keys == {A}
    scene.backend.refuses.clear()
    scene.ask("retry", keys=(A,))
    scene.work()
    assert scene.backend.applied == ["a1", "a2", "a3"]
    assert not scene.redis.exists(scene.keys.amended(0, NAME))


def test_attempts_add_up(scene):
    """G6: a record counts all tries, from the first to the last."""
    scene.park("a", "a1")
    scene.backend.refuses = {"a1"}
    for _ in range(2):
        scene.ask("retry", keys=(A,))
        scene.work()
    letter = scene.letters()[0].letter
    assert (letter.attempts, letter.first_at, letter.last_at) == (3 + 2 + 2, 10, 80)


def test_a_discarded_first_frees_what_waits_behind(scene):
    """G6: a discarded event stays in history with who and why; those behind it are applied."""
    scene.park("a", "a1", "a2", "a3")
    scene.ask("discard", entries=(scene.entry("a1"),))
    scene.work()
    assert scene.backend.applied == ["a2", "a3"]
    assert scene.letters() == []
    assert scene.lane.parked.keys == set()
    assert (scene.counter("parked"), scene.counter("discarded")) == (0, 1)
    published, record = scene.logged()[0], scene.logged()[-1]
    assert published.envelope.event.user == "a1", "it is still in the log"
    assert (
        record.position.n == len(scene.logged()) == int(scene.redis.hget(scene.keys.state(0), "n"))
    )
    assert record.envelope.key == A
    assert record.envelope.scope == published.envelope.scope
    assert record.envelope.session == published.envelope.session
    assert record.envelope.event == DeadLetterResolved(
        provider=NAME,
        event_id=published.envelope.id,
        action="discard",
        reason="because",
        operator="op@host",
    )


def test_a_discarded_later_one_frees_nothing(scene):
    """G3: a letter in the middle goes alone; its key still waits behind its first."""
    scene.park("a", "a1", "a2", "a3")
    scene.ask("discard", entries=(scene.entry("a3"), scene.entry("a2")))
    scene.work()
    assert scene.backend.applied == []
    assert scene.texts() == ["a1"]
    assert scene.lane.parked.keys == {A}
    scene.ask("retry", keys=(A,))
    scene.work()
    assert scene.backend.applied == ["a1"]
    assert scene.lane.parked.keys == set()


def test_the_record_of_a_discard_never_waits(scene):
    """G6: what the log is told of a dead letter is not put aside behind one."""
    scene.park("a", "a1", "a2")
    scene.ask("discard", entries=(scene.entry("a2"),))
    scene.work()
    record = scene.logged()[-1]
    assert isinstance(record.envelope.event, DeadLetterResolved)
    scene.lane.parked.put_aside([record], BEHIND)
    assert scene.texts() == ["a1"]


def test_an_edited_event_is_applied_instead(scene):
    """G6: an edit reaches the provider and the log's history; the published event stays."""
    scene.park("a", "a1", "a2")
    scene.ask("edit", entries=(scene.entry("a1"),), event={"user": "better", "assistant": "ok"})
    scene.work()
    assert scene.backend.applied == ["better", "a2"]
    assert scene.logged()[0].envelope.event.user == "a1"
    (told,) = scene.told()
    assert (told.action, told.replacement["user"]) == ("edit", "better")
    assert scene.counter("discarded") == 0


def test_an_edit_is_kept_while_the_letter_waits(scene):
    """G6: an edited event that is refused too stays edited for the next retry."""
    scene.park("a", "a1")
    scene.backend.refuses = {"better"}
    scene.ask("edit", entries=(scene.entry("a1"),), event={"user": "better"})
    scene.work()
    (stored,) = scene.letters()
    assert stored.amendment is not None
    assert stored.amendment.edited == {"user": "better"}
    assert stored.letter.reason == "'better' again"
    scene.backend.refuses.clear()
    scene.ask("retry", keys=(A,))
    scene.work()
    assert scene.backend.applied == ["better"]


def test_an_edit_that_does_not_fit_is_refused(scene):
    """G6: an edit that is no event of its type changes nothing but the reason."""
    scene.park("a", "a1")
    scene.ask("edit", entries=(scene.entry("a1"),), event={"user": 7})
    scene.work()
    assert scene.backend.applied == []
    assert "the edited event: not a TurnCompleted" in scene.letters()[0].letter.reason


def test_an_event_that_the_log_lost_is_said(scene):
    """G6: a letter whose event is gone from the log is not dropped; it can be discarded."""
    scene.park("a", "a1", "a2")
    scene.redis.xdel(scene.keys.log(0), scene.entry("a1"))
    scene.ask("retry", keys=(A,))
    scene.work()
    first = scene.letters()[0].letter
    assert first.reason == EVENT_GONE
    scene.ask("discard", entries=(first.entry,))
    scene.work()
    assert scene.backend.applied == ["a2"]
    assert scene.told()[0].event_id == first.event_id


@pytest.mark.parametrize(("point", "nth"), DEATHS)
def test_an_owner_dies_anywhere(scene, point, nth):
    """G3, G4, G6: whoever dies where, the next owner ends what was asked, in order and once.

    Where it died with a letter, that one is refused, and a new retry goes on from there.
    """
    scene.park("a", "a1", "a2", "a3", "a4")
    passed = []

    def crash(name: str) -> None:
        passed.append(name)
        if passed.count(point) == nth and name == point:
            raise Crash

    scene.owner(crash)
    scene.ask("discard", entries=(scene.entry("a1"),))
    scene.ask("edit", entries=(scene.entry("a3"),), event={"user": "better"})
    with pytest.raises(Crash):
        scene.work()
    scene.owner()
    scene.work()
    if point == "redo.after_apply":
        assert scene.letters()[0].letter.reason == DEADLY_REASON
        scene.ask("retry", keys=(A,))
        scene.work()
    assert scene.backend.applied == ["a2", "better", "a4"]
    assert [told.action for told in scene.told()] == ["discard", "edit"]
    assert scene.letters() == []
    assert scene.parked() == {}
    assert (scene.counter("parked"), scene.counter("discarded")) == (0, 1)
    assert not scene.requests.waiting_fields()


def test_a_deadly_letter_ends_one_owner_for_each_retry(scene):
    """G6: a letter that ends its owner is refused by the next; its key waits, others go on."""
    scene.park("a", "a1", "a2")
    scene.park("b", "b1")

    def die() -> None:
        raise Crash

    for _ in range(2):
        scene.backend.on_call = die
        scene.ask("retry", keys=(A,))
        scene.ask("retry", keys=(B,))
        with pytest.raises(Crash):
            scene.work()
        scene.backend.on_call = lambda: None
        scene.owner()
        scene.work()
        assert not scene.requests.waiting_fields()
        assert scene.texts() == ["a1", "a2"]
        assert scene.letters()[0].letter.reason == DEADLY_REASON
    assert scene.letters()[0].letter.attempts == 3 + 2
    scene.ask("retry", keys=(A,))
    scene.work()
    assert scene.backend.applied == ["b1", "a1", "a2"], "it may be asked again"


def test_who_lost_the_lane_and_lives_tries_again(scene):
    """G6: a retry during which Redis was restarted ended nobody: who tried it takes it up again."""
    scene.park("a", "a1", "a2")

    def lost() -> None:
        raise LeaseLost("another server")

    scene.backend.on_call = lost
    scene.ask("retry", keys=(A,))
    scene.work()
    scene.backend.on_call = lambda: None
    scene.owner(same=True)
    scene.work()
    assert scene.backend.applied == ["a1", "a2"]
    assert scene.letters() == []


def test_what_is_deadly_behind_a_discarded_one_is_refused(scene):
    """G6: a letter that nobody named ends one owner, too, and then waits as refused."""
    scene.park("a", "a1", "a2", "a3")

    def die() -> None:
        raise Crash

    scene.backend.on_call = die
    scene.ask("discard", entries=(scene.entry("a1"),))
    with pytest.raises(Crash):
        scene.work()
    scene.backend.on_call = lambda: None
    scene.owner()
    scene.work()
    assert scene.texts() == ["a2", "a3"]
    assert scene.letters()[0].letter.reason == DEADLY_REASON


def test_a_newer_request_of_the_key_lets_it_be_tried_again(scene):
    """G6: who asks for a key again, after a death and before the next owner, gets another try."""
    scene.park("a", "a1")

    def die() -> None:
        raise Crash

    scene.backend.on_call = die
    scene.ask("retry", keys=(A,))
    with pytest.raises(Crash):
        scene.work()
    scene.ask("edit", entries=(scene.entry("a1"),), event={"user": "better"})
    scene.backend.on_call = lambda: None
    scene.owner()
    scene.work()
    assert scene.backend.applied == ["better"]
    assert not scene.redis.exists(scene.keys.amended(0, NAME))


def test_an_outage_is_no_death(scene):
    """G6: a letter whose try waits for the backend is tried by the next owner as well."""
    scene.park("a", "a1")
    scene.backend.down = True
    scene.ask("retry", keys=(A,))
    with pytest.raises(Unavailable):
        scene.work()
    scene.backend.down = False
    scene.owner()
    scene.work()
    assert scene.backend.applied == ["a1"]


def test_a_foreign_record_goes_alone(scene):
    """G6: a discarded record that memorybus did not write goes, once, and counts nowhere."""
    scene.park("a", "a1")
    for body in ({"x": "hello"}, {"r": "null"}, {"r": '{"key":7}'}):
        scene.redis.xadd(scene.keys.dead(0, NAME), body)
    scene.ask("discard", entries=("0-0",))
    scene.work()
    assert not scene.requests.waiting_fields()
    assert scene.texts() == ["a1"]
    assert len(scene.letters()) == 1
    assert len(scene.logged()) == 1 + 3
    assert (scene.counter("parked"), scene.counter("discarded")) == (1, 0)
    assert scene.lane.parked.keys == {A}


def test_foreign_records_are_not_counted_among_letters(scene):
    """G6: a key whose letters are counted is freed with its last one beside strangers, too."""
    for body in ({"x": "hello"}, {"r": '{"key":7}'}, {"r": f'{{"key":"{A}","entry":7}}'}):
        scene.redis.xadd(scene.keys.dead(0, NAME), body)
    scene.park("a", "a1", "a2")
    scene.redis.hset(scene.keys.parked(0, NAME), A, "theirs")
    scene.park("a", "a3")
    scene.ask("retry", keys=(A,))
    scene.work()
    assert scene.backend.applied == ["a1", "a2", "a3"]
    assert scene.parked() == {}


@pytest.mark.parametrize("body", ['{"attempts":"two"}', "\xff"])
def test_an_amendment_that_cannot_be_read(scene, body):
    """G6: what a newer release wrote about a letter is kept; it can be discarded or edited."""
    scene.park("a", "a1", "a2")
    scene.park("b", "b1")
    entry = scene.entry("a1")
    scene.redis.hset(scene.keys.amended(0, NAME), entry, body)
    scene.ask("retry", keys=(A, B))
    scene.work()
    assert scene.backend.applied == ["b1"], "it may be an edit"
    assert scene.letters()[0].letter.reason == UNREADABLE
    assert scene.redis.hget(scene.keys.amended(0, NAME), entry) == body.encode()
    scene.ask("edit", entries=(entry,), event={"user": "better"})
    scene.work()
    assert scene.backend.applied == ["b1", "better", "a2"]


def test_two_requests_for_one_letter_are_carried_out_in_turn(scene):
    """G6: a discard and a later edit of one letter are two passes: the older is not forgotten."""
    scene.park("a", "a1", "a2")
    scene.ask("discard", entries=(scene.entry("a1"),))
    scene.ask("edit", entries=(scene.entry("a1"),), event={"user": "better"})
    scene.work()
    scene.work()
    assert scene.backend.applied == ["a2"]
    assert [told.action for told in scene.told()] == ["discard"]
    assert not scene.requests.waiting_fields()


def test_one_above_the_checkpoint_holds_up_its_key_alone(scene):
    """G3, G6: what the lane has not passed waits with its key; the rest of the pass goes on."""
    scene.park("a", "a1", "a2")
    scene.park("b", "b1")
    scene.lane.window.n = 1
    scene.park("c", "c1")
    scene.lane.window.n = 1
    scene.redis.xadd(scene.keys.dead(0, NAME), {"x": "hello"})
    scene.ask("retry", keys=(A, B))
    scene.ask("discard", entries=("0-0",))
    scene.work()
    assert scene.backend.applied == ["a1"]
    assert len(scene.letters()) == 3, "the foreign record is gone"
    scene.lane.window.n = 4
    scene.clock.advance(1)
    scene.work()
    assert scene.backend.applied == ["a1", "a2", "b1"]
    assert scene.texts() == ["c1"]
    assert not scene.requests.waiting_fields()


def test_a_stale_owner_settles_nothing(scene):
    """G5: dead letters belong to the lane's newest owner; an older one changes nothing."""
    scene.park("a", "a1")
    stale, stored = scene.lane, scene.letters()[0]
    scene.owner()
    for change in (
        lambda: stale.parked.settle(stored),
        lambda: stale.parked.settle(stored, b"event"),
        lambda: stale.parked.put_aside(scene.logged(), BEHIND),
    ):
        with pytest.raises(LeaseLost):
            change()
    assert scene.texts() == ["a1"]
    assert len(scene.logged()) == 1
    assert list(scene.parked()) == [A.encode()]


def test_an_owner_of_another_server_settles_nothing(scene):
    """G5: after a restart or a failover a lane is taken anew before its letters are touched."""
    scene.park("a", "a1")
    (stored,) = scene.letters()
    scene.redis.hset(scene.keys.lane(0, NAME), "run", "0" * 40)
    for change in (
        lambda: scene.lane.parked.settle(stored),
        lambda: scene.lane.parked.settle(stored, b"event"),
        lambda: scene.lane.parked.amend(stored, Amendment(attempts=1)),
    ):
        with pytest.raises(LeaseLost):
            change()
    assert scene.texts() == ["a1"]
    assert len(scene.logged()) == 1


def test_a_letter_goes_once(scene):
    """G6: a letter that is gone is neither counted nor recorded a second time."""
    scene.park("a", "a1", "a2")
    stored = scene.letters()[0]
    for _ in range(2):
        scene.lane.parked.settle(stored, b"event")
    assert (scene.counter("parked"), scene.counter("discarded")) == (1, 1)
    assert scene.redis.xlen(scene.keys.log(0)) == 3
    assert scene.lane.parked.keys == {A}


def test_a_lane_that_comes_back_is_gone_through_anew(scene):
    """G3: what an owner knew of a lane is void once the lane was somebody else's."""
    scene.park("a", "a1")
    scene.park("b", *(f"b{n}" for n in range(20)))
    scene.ask("retry", keys=(A, B))
    scene.backend.refuses = {"a1"}
    scene.backend.on_call = lambda: scene.clock.advance(SLICE_SECONDS / 8)
    assert scene.redo.work({0: cast("Any", scene.lane)})
    scene.backend.refuses.clear()
    same_worker = scene.redo
    scene.owner()
    scene.redo = same_worker
    scene.work()
    assert "a1" in scene.backend.applied
    assert scene.letters() == []


def test_a_lost_lane_is_left_alone(scene):
    """G5: a redo whose lane has another owner meanwhile stops; the request waits for that one."""
    scene.park("a", "a1", "a2")
    scene.ask("retry", keys=(A,))
    stale, redo = scene.lane, scene.redo
    scene.owner()
    assert not redo.work({0: cast("Any", stale)})
    assert scene.texts() == ["a1", "a2"]
    assert len(scene.requests.waiting_fields()) == 1
    scene.work()
    assert scene.texts() == []


def test_a_backend_that_is_down_costs_nothing(scene):
    """G6: a retry while the backend is down is told to the caller, and goes on afterwards."""
    scene.park("a", "a1", "a2")
    scene.ask("retry", keys=(A,))
    scene.backend.down = True
    with pytest.raises(Unavailable):
        scene.work()
    assert scene.letters()[0].letter.attempts == 3, "that is not this event's failure"
    scene.backend.down = False
    scene.work()
    assert scene.backend.applied == ["a1", "a2"]


def test_what_the_checkpoint_has_not_passed_waits(scene):
    """G3: a letter that the lane will read again is not applied before the lane passed it."""
    scene.park("a", "a1")
    scene.lane.window.n = 0
    scene.ask("retry", keys=(A,))
    scene.work()
    assert scene.backend.applied == []
    scene.lane.window.n = 1
    scene.clock.advance(1)
    scene.work()
    assert scene.backend.applied == ["a1"]


def test_a_long_drain_lets_the_lane_go_on(scene):
    """G10: a drain works in slices, and takes in what its key puts aside meanwhile."""
    scene.park("a", *(f"a{n}" for n in range(40)))
    scene.ask("retry", keys=(A,))
    scene.backend.on_call = lambda: scene.clock.advance(SLICE_SECONDS / 8)
    assert scene.redo.work({0: cast("Any", scene.lane)})
    assert len(scene.backend.applied) == 8
    scene.publish("a", "last")
    event = scene.logged()[-1]
    scene.lane.parked.put_aside([event], BEHIND)
    scene.lane.window.n = event.position.n
    scene.work()
    assert scene.backend.applied == [*(f"a{n}" for n in range(40)), "last"]
    assert scene.lane.parked.keys == set()


@pytest.mark.parametrize("theirs", ["", "17-3", "1 2 3", "17-3 many"])
def test_a_key_whose_count_others_overwrote_is_freed_with_its_last_letter(scene, theirs):
    """G6: where the number of a key's letters cannot be read, they are counted: none is passed."""
    scene.park("a", "a1", "a2")
    scene.park("b", "b1")
    last = scene.parked()[A.encode()].split()[0]
    scene.redis.hset(scene.keys.parked(0, NAME), A, theirs)
    scene.backend.refuses = {"a2"}
    scene.ask("retry", keys=(A, B))
    scene.work()
    assert scene.backend.applied == ["a1", "b1"]
    assert scene.parked() == {A.encode(): last + b" 1"}
    scene.backend.refuses.clear()
    scene.ask("retry", keys=(A,))
    scene.work()
    assert scene.parked() == {}


def test_what_this_release_cannot_read_is_left(scene):
    """G6: a request of a newer release is left for its workers; foreign fields harm nobody."""
    scene.park("a", "a1")
    new = new_id()
    scene.redis.hset(
        scene.keys.redo(NAME),
        mapping={f"p00:{new}": b'{"action":"dream"}', "p99:x": b"?", "\x00\xff": b"?"},
    )
    scene.ask("retry", keys=(A,))
    scene.work()
    assert scene.backend.applied == ["a1"]
    assert list(scene.requests.waiting_fields()) == [f"p00:{new}"]


def test_a_foreign_key_stops_no_lane(scene, caplog):
    """G6: something else under the requests' key is told once, and harms nobody."""
    scene.redis.set(scene.keys.redo(NAME), "mine")
    for _ in range(3):
        scene.work()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    scene.redis.delete(scene.keys.redo(NAME))


def test_requests_are_bounded(scene):
    """G10: no more requests wait for a provider than are declared."""
    requests: Sequence[LetterRequest] = [
        LetterRequest(new_id(), 0, "retry", keys=(A,)) for _ in range(257)
    ]
    with pytest.raises(Exception, match="more than 256"):
        scene.requests.send(requests)
    assert not scene.requests.waiting_fields()


def test_a_full_server_settles_dead_letters(make_redis, make_settings):
    """G4, G6: a server without memory still lets dead letters go, and records decisions."""
    server = make_redis()
    scene = Scene(make_settings(url=server.url, partitions=1), FakeClock())
    scene.park("a", "a1", "a2")
    scene.ask("discard", entries=(scene.entry("a1"),))
    scene.redis.config_set("maxmemory", "1")
    scene.work()
    assert scene.backend.applied == ["a2"]
    assert len(scene.told()) == 1
    scene.redis.close()
