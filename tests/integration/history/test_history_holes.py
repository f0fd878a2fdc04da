"""G7: what the log lacks and the archive has is read, wherever it stands."""

from typing import Any

import msgspec
import pytest
import redis
from helpers.archive.past import read_all
from helpers.archive.sealed_log import QUICK, SealedLog
from helpers.making import MakeSettings
from memorybus.events import Envelope, Scope, SessionRef, SessionStarted
from memorybus.history.history import History
from memorybus.history.log_reader import EventPage
from memorybus.ids import derived_id
from memorybus.log.entry import Place
from memorybus.log.stream import EventLog
from memorybus.query.query import Query
from memorybus.redis import scripts
from memorybus.redis.scripts import OutgoingEvent
from memorybus_workers.archiving.archiver import run_once

P = SealedLog.PARTITION
HOT = QUICK | {"hot_window": 3600.0}


@pytest.fixture
def log(redis_client: redis.Redis, make_settings: MakeSettings) -> SealedLog:
    """Return an empty log with a hot window."""
    return SealedLog(make_settings(**HOT))


def of(log: SealedLog) -> History:
    """Return the history as whoever opens it now."""
    return History.from_settings(log.redis, log.settings)


def lose(log: SealedLog, after: int) -> None:
    """Let Redis come back from a copy that ends at a number."""
    for entry, fields in log.redis.xrange(log.key):
        if int(fields[b"n"]) > after:
            log.redis.xdel(log.key, entry)
    log.redis.hset(log.state, "n", after)


def seen(log: SealedLog) -> list[int]:
    """Return the numbers that are read, both ways the same."""
    forward = [event.position.n for event in of(log).scan()]
    assert [event.position.n for event in of(log).scan_backward()] == forward[::-1]
    return forward


def test_a_hole_is_read_from_the_archive(log):
    """G7: Redis came back without what was sealed, and took more since: nothing is passed over."""
    log.grow(80)
    lose(log, 40)
    log.append(5)
    assert (log.logged(), seen(log)) == ([*range(1, 41), *range(81, 86)], [*range(1, 86)])


@pytest.mark.parametrize("gone", [range(30, 50), range(40, 41), range(41, 43), range(39, 44)])
def test_no_page_goes_over_a_hole(log, gone):
    """G7: a page ends where the log lacks numbers, also where another's entry fills the row."""
    log.append(40)
    log.redis.xadd(log.key, {"x": "y"})
    log.grow(40)
    entries: Any = log.redis.xrange(log.key)
    whole = [entry.decode() for entry, fields in entries if b"n" in fields]
    for entry, fields in entries:
        if int(fields.get(b"n", 0)) in gone:
            log.redis.xdel(log.key, entry)
    history = of(log)
    assert [event.position.entry for event in read_all(history, partition=P)] == whole
    assert history.read(P, whole[-1], after_n=80) == EventPage([])


def test_strangers_do_not_part_a_page(log):
    """G8: the place of a number is the event's; another's entry before it is no event."""
    log.append(9)
    log.redis.xadd(log.key, {"x": "y"})
    log.append(1)
    assert of(log).place(P, 10) == Place(of(log).log.last_entry(P), 10)
    assert [event.position.n for event in of(log).read(P).events] == [*range(1, 11)]


def test_a_lost_tail_is_read_from_the_archive(log):
    """G7: where Redis lost its tail the history ends where the archive does."""
    log.grow(80)
    lose(log, 40)
    assert seen(log) == [*range(1, 81)]
    assert [of(log).place(P, n).n for n in (40, 60, 90)] == [40, 60, 80]


def test_a_log_that_lost_all_is_read_from_the_archive(log):
    """G7: where Redis lost a partition and its numbers, the archive has them."""
    log.grow(80)
    log.redis.delete(log.key, log.state)
    run_once(log.settings)
    assert seen(log) == [*range(1, 81)]


def test_once_numbers_are_given_anew_the_history_is_whole(log):
    """G7: numbers that were given twice, and given anew, leave nothing out."""
    log.grow(80)
    lose(log, 40)
    log.redis.hset(log.state, "sealed", 40)
    log.redis.hdel(log.state, "sealed_run")
    log.grow(10)
    run_once(log.settings)
    assert seen(log) == [*range(1, 91)]


def test_numbers_and_moments_are_found_in_a_hole(log):
    """G8: a number, and a time, mean the same place whether Redis still has it or not."""
    log.grow(80)
    then = of(log).place(P, 80)
    inside = of(log).place(P, 60)
    assert then is not None
    assert inside is not None
    lose(log, 40)
    log.append(5)
    after = of(log).place(P, 81)
    assert after is not None
    assert of(log).place(P, 60) == inside
    assert of(log).last_before(P, after.entry) == then
    assert of(log).places("p01:80") == {0: 0, 1: 80}


def test_a_lineage_is_found_in_a_hole(log):
    """G7: a session that began in a hole belongs to its lineage."""
    log.append(40)
    envelope = Envelope(
        id=derived_id("branch", "1"),
        key="session:root",
        scope=Scope(agent="a", user="ann"),
        session=SessionRef(id="child", root="root", parent="root"),
        at=1,
        event=SessionStarted(parent="root", reason="branch"),
    )
    one = OutgoingEvent(41, envelope.id.encode(), b"digest..", msgspec.msgpack.encode(envelope))
    call = scripts.append(log.keys, P, "p", 0, [one], window_ms=10**9, max_ids=10**6)
    scripts.run(log.redis, call)
    run_once(log.settings)
    lose(log, 40)
    assert set(of(log).resolve(Query(lineages=("root",))).sessions) == {"root", "child"}


def test_a_stranger_hides_nothing(log):
    """G7: another's entry that looks like the first number hides no archive behind it."""
    log.grow()
    log.redis.xadd(log.key, {"n": "1", "hello": "world"})
    lose_ours = [e for e, fields in log.redis.xrange(log.key) if b"hello" not in fields]
    log.redis.xdel(log.key, *lose_ours)
    assert seen(log) == [*range(1, 51)]


def test_another_s_entry_beside_a_hole_hides_nothing(log):
    """G7: what was sealed before and after another's entry inside a hole is read, in order."""
    log.append(20)
    log.redis.xadd(log.key, {"hello": "world"})
    log.grow(20)
    kept = [e.position.entry for e in of(log).scan()]
    for entry, fields in log.redis.xrange(log.key):
        if 10 < int(fields.get(b"n", 0)) < 30:
            log.redis.xdel(log.key, entry)
    assert [e.position.entry for e in of(log).scan()] == kept
    assert [e.position.entry for e in of(log).scan_backward()] == kept[::-1]


def test_however_many_strangers_there_are_ours_are_found(log):
    """G8: a moment is found behind any number of entries that are not ours."""
    log.append(20)
    last = of(log).place(P, 20)
    for _ in range(700):
        log.redis.xadd(log.key, {"x": "y"})
    assert last is not None
    assert of(log).last_before(P, of(log).log.last_entry(P)) == last
    assert of(log).place(P, 20) == last
    assert of(log).places(2**45)[P] == 20
    assert of(log).read(P, last.entry, after_n=20) == EventPage([])
    log.append(1)
    assert [one.position.n for one in of(log).read(P, last.entry, after_n=20).events] == [21]


class Counting:
    """Redis that counts what it is asked."""

    def __init__(self, redis: Any) -> None:
        self._redis = redis
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        """Count, and pass on."""
        self.asked += 1
        return getattr(self._redis, name)


def test_what_follows_in_the_log_costs_one_command(log):
    """G7: a lane that needs nothing of the archive asks Redis once a page, and nobody else."""
    log.grow(60)

    def refuse() -> None:
        raise AssertionError("the archive was asked")

    redis_ = Counting(log.redis)
    history = History(EventLog(redis_, log.settings), find=refuse)
    redis_.asked, after, n = 0, "0-0", 0
    for pages in range(1, 7):
        last = history.read(P, after, 10, after_n=n).events[-1].position
        after, n = last.entry, last.n
        assert (n, redis_.asked) == (10 * pages, pages)


def test_a_stranger_in_the_log_needs_no_archive(log):
    """G7: where ours go on behind another's entry nothing is missing, whatever the archive has."""
    log.append(50)
    log.redis.xadd(log.key, {"x": "y"})
    log.grow()
    history = History(EventLog(log.redis, log.settings))
    after = history.read(P, count=50).events[-1].position
    page = history.read(P, after.entry, after_n=50).events
    assert [event.position.n for event in page] == [*range(51, 101)]


def test_before_the_first_there_is_nothing(log):
    """G8: the beginning of time is a moment, too."""
    log.append(3)
    assert of(log).places(0, inclusive=False) == {0: 0, 1: 0}
    assert of(log).last_before(P, "0-0") is None
