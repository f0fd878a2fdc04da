"""The publisher inside an agent's process: receipts, threads, forks, refusals."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from helpers.processes.forked import in_child
from helpers.processes.stalls import MARGIN
from helpers.processes.threads import side_by_side
from helpers.processes.waiting import wait_until
from helpers.redis.log import logged
from helpers.stories.scenario import partition
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.config.settings import Settings
from memorybus.errors import InvalidEvent, SpoolError
from memorybus.events import Scope, SessionRef, TurnCompleted
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys

LOCAL = 0.5
"""Seconds that a hundred writes to the local disk may take."""


@pytest.fixture(name="bus")
def _bus(settings: Settings) -> Iterator[MemoryBus]:
    with MemoryBus.connect(settings) as bus:
        yield bus


@pytest.fixture(name="session")
def _session(bus: MemoryBus) -> Session:
    return bus.session("s", warm=False)


def test_a_receipt_tells_what_is_promised(bus, session):
    """G1: a receipt names level, id and sequence; `flush` waits for the next level."""
    first, second = session.turn_completed("a", "b"), session.turn_completed("c", "d")
    assert first.level == "spooled"
    assert len(first.event_id) == 32
    assert second.sequence > first.sequence
    assert bus.flush("logged", 25)
    assert session.turn_started("x").log == "up"


def test_nothing_to_send_is_flushed_at_once(settings):
    """G1: a bus without new events is flushed, also on a spool that another owner left."""
    for _ in range(2):
        with MemoryBus.connect(settings) as bus:
            assert bus.flush("logged", 25)
            bus.session("s", warm=False)
            assert bus.flush("logged", 25)


def test_what_waits_behind_a_foreign_key_is_unsent(settings, redis_client):
    """G1: a partition that takes nothing holds up no other, and its events count as unsent."""
    theirs = Keys(settings.namespace).log(partition(settings, "s"))
    redis_client.set(theirs, "theirs")
    try:
        with MemoryBus.connect(settings) as bus:
            bus.session("s", warm=False).turn_completed("a", "b")
            assert not bus.flush("logged", 0.5)
            assert bus.unsent > 0
            redis_client.delete(theirs)
            assert bus.flush("logged", 25)
            assert bus.unsent == 0
    finally:
        redis_client.delete(theirs)


def test_the_same_turn_again_adds_nothing(session, bus, settings):
    """G2: an ordinal makes a turn's id; publishing it again, by any object, adds nothing."""
    again = bus.session("s", warm=False)
    ids = {one.turn_completed("a", "b", ordinal=0).event_id for one in (session, again, session)}
    assert len(ids) == 1
    assert bus.flush(timeout=25)
    assert len(logged(settings, "s")) == 2


def test_threads_publish_side_by_side(bus, settings):
    """G3: many threads publish at once; each one's events stand in its order, none is missing."""
    names = [f"t{number}" for number in range(8)]

    def run(name: str) -> None:
        session = bus.session(name, warm=False)
        for number in range(100):
            session.turn_completed(f"{number}", "", ordinal=number)

    side_by_side(run, zip(names, strict=True))
    assert bus.flush("logged", 25)
    for name in names:
        events = [e.envelope.event for e in logged(settings, name)]
        assert [e.ordinal for e in events if isinstance(e, TurnCompleted)] == list(range(100))


TEXTS = [
    "",
    "\x00",
    "\ud800",
    "a\udfffb",
    "🦊",
    "\u202e",
    "\r\n",
    "<memory-context>x</memory-context>",
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_any_text_is_taken(bus, session, settings, text):
    """G9: whatever characters a text holds, in any field, the event is taken and can be read."""
    session.turn_completed(
        text, text, messages=[{"role": "user", "content": text, "x": [text]}], model=text
    )
    session.memory_written("add", f"{text}.", provenance={"from": text})
    session.delegated(text, text, child_session=text)
    session.ended(text)
    session.compressing([{"content": text}])
    session.branch("b", title=text).turn_started(text)
    bus.session("t", title=text)
    assert bus.flush("logged", 25), bus.problem
    assert all(event.envelope.id for event in logged(settings, "s"))


BAD: list[Callable[[MemoryBus], Any]] = [
    lambda bus: bus.session(""),
    lambda bus: bus.session("a\x00b"),
    lambda bus: bus.session("x" * 513),
    lambda bus: bus.session("\ud800"),
    lambda bus: bus.session("s", user=""),
    lambda bus: bus.session("s", agent="\udfff"),
    lambda bus: bus.session("s").branch("s"),
    lambda bus: bus.session("s").memory_written("forget", "x"),
    lambda bus: bus.session("s").memory_written("add", "  "),
    lambda bus: bus.session("s").memory_written("remove"),
    lambda bus: bus.session("s").turn_completed("a", "b", messages=[{"x": object()}]),
    lambda bus: bus.session("s").turn_completed("a", "b", tokens_in=1 << 70),
    lambda bus: bus.session("s").turn_completed("a", "b", at=1_767_225_600),
    lambda bus: bus.session("new", at=1_767_225_600),
    lambda bus: bus.publish(
        TurnCompleted(), key="k", scope=Scope(), session=SessionRef("s", "s"), event_id="no id"
    ),
]


@pytest.mark.parametrize("call", BAD, ids=range(len(BAD)))
def test_nonsense_is_refused_clearly(bus, call):
    """G10: what makes no sense raises `InvalidEvent`, and the bus goes on."""
    with pytest.raises(InvalidEvent):
        call(bus)
    bus.session("well", warm=False)
    assert bus.flush(timeout=25)


def test_a_closed_bus_says_so(settings):
    """G1: publishing after `close` is refused; closing twice is nothing."""
    bus = MemoryBus.connect(settings)
    session = bus.session("s", warm=False)
    bus.close()
    bus.close()
    with pytest.raises(SpoolError, match="closed"):
        session.turn_completed("a", "b")


def test_a_place_that_cannot_be_written_is_named(tmp_path, make_settings):
    """G10: without a place for the spool, connecting says which and what to set."""
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(SpoolError, match="data_dir"):
        MemoryBus.connect(make_settings(url="redis://127.0.0.1:1", data_dir=blocked / "x"))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_publishes(bus, session, settings):
    """G2: after a fork both processes publish, each through a spool of its own."""
    session.turn_completed("parent before", "", ordinal=0)
    assert bus.flush(timeout=25)

    def child() -> None:
        session.turn_completed("child", "", ordinal=1)
        assert bus.flush("logged", 25)
        assert len(list(settings.spool_dir.glob("*.db"))) == 2
        bus.close()

    in_child(child)
    session.turn_completed("parent after", "", ordinal=2)
    assert bus.flush("logged", 25)
    events = [e.envelope.event for e in logged(settings, "s")]
    turns = [e.user for e in events if isinstance(e, TurnCompleted)]
    assert turns == ["parent before", "child", "parent after"]
    assert bus.publisher.spool._file_lock.is_locked


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_asks_and_reads_alone(bus, session, settings, redis_client):
    """G9: a child's requests do not wait for its parent's events, nor use its connection."""
    for number in range(30):
        session.turn_completed(f"{number}", "")
    assert bus.flush(timeout=25)
    assert session.prefetch() == ""
    want = Keys(settings.namespace).want(session.slot)
    addresses = _connections(redis_client)

    def child() -> None:
        session.queue_prefetch("what was said")
        wait_until(lambda: connect_redis(settings).exists(want), "the child's request")
        assert session.prefetch() == ""
        here = _connections(connect_redis(settings))
        assert len(here) > len(addresses), "a connection of its own"
        os._exit(0)

    in_child(child)
    assert session.prefetch() == ""
    assert bus.recalls.failures == 0


def _connections(client: redis.Redis) -> set[str]:
    found: Any = client.client_list()
    return {one["id"] for one in found}


def test_connecting_is_quick_without_redis(make_settings, witness):
    """G9: connecting, publishing and closing do not wait for a Redis that does not answer."""
    settings = make_settings(url="redis://10.255.255.1:6379/0")

    def published() -> MemoryBus:
        bus = MemoryBus.connect(settings)
        session = bus.session("s", warm=False)
        for number in range(100):
            session.turn_completed(f"{number}", "")
        return bus

    bus, took = witness.timed(published)
    assert took < LOCAL + MARGIN
    _, took = witness.timed(lambda: bus.close(0.1))
    assert took < 0.2 + MARGIN  # what was given, for sending and again for the thread's end
