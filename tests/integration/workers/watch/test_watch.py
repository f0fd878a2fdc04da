"""A worker's watch: it tells at once what is lost, and remembers what the log no longer shows."""

import logging
import math
from collections.abc import Iterator

import pytest
from helpers.making import MakeServer, MakeSettings
from helpers.redis.log import Log
from helpers.redis.servers import RedisServer, unreachable_client
from memorybus.clock import SYSTEM
from memorybus.health.finding import Check
from memorybus.log.continuity import Gap
from memorybus.log.losses import Losses
from memorybus.testing import FakeClock
from memorybus.text.display import iso
from memorybus_console.operations.doctor.doctor import LOG_TOPICS, check_status
from memorybus_workers.watch.watch import POLL_SECONDS, REMINDER_SECONDS, LogWatch

P = Log.PARTITION


class Watched:
    """A log, its watch and the watch's clock."""

    def __init__(self, log: Log, clock: FakeClock) -> None:
        self.log = log
        self.clock = clock
        self.watch = LogWatch(log.settings, clock)
        self.poll()

    def poll(self, times: int = 1) -> None:
        """Poll, each time when it is due."""
        for _ in range(times):
            self.clock.advance(POLL_SECONDS)
            self.watch.poll(self.log.client)

    def settle(self) -> None:
        """Poll for so long that producers may have forgotten what is in the log."""
        keep = self.log.settings.spool_keep + POLL_SECONDS
        self.poll(2 * round(keep / POLL_SECONDS + 1))

    @property
    def subjects(self) -> list[str]:
        """What data loss the watch sees."""
        return [alarm.subject for alarm in self.watch.alarms if alarm.code == "data_loss"]

    @property
    def losses(self) -> list[Gap]:
        """What is written down."""
        return Losses(self.log.client, self.log.keys).all()


@pytest.fixture(name="server")
def _server(make_redis: MakeServer) -> RedisServer:
    """Return a server that says no other alarm."""
    return make_redis(appendonly="yes", appendfsync="always")


@pytest.fixture(name="watched")
def _watched(
    server: RedisServer, make_settings: MakeSettings, fake_clock: FakeClock
) -> Iterator[Watched]:
    log = Log(make_settings(url=server.url, partitions=2))
    yield Watched(log, fake_clock)
    log.client.close()


@pytest.fixture(name="said")
def _said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "memorybus")
    return caplog


def how_lost(gap: Gap) -> str:
    """Return the kind of loss that a record names."""
    return gap.record.partition(":")[0]


def errors(said: pytest.LogCaptureFixture) -> list[str]:
    """Return the error lines so far."""
    return [one.getMessage() for one in said.records if one.levelno == logging.ERROR]


def test_a_gap_is_logged_once(watched, said):
    """G7: data loss is one error line with partition, numbers and what to do, however long."""
    watched.log.append(10)
    watched.poll(2)
    assert errors(said) == []
    watched.log.client.xtrim(watched.log.key, maxlen=4, approximate=False)
    watched.poll(5)
    (line,) = errors(said)
    assert line.startswith("DATA LOSS: partition p01: events 1 to 6 are gone; find who trims")
    assert watched.subjects == ["p01:1"]


def test_a_gap_that_grows_is_told_again_each_minute(watched, said):
    """G10: somebody who trims without end does not fill the worker's log."""
    watched.log.append(200)
    for left in range(190, 100, -1):
        watched.log.client.xtrim(watched.log.key, maxlen=left, approximate=False)
        watched.poll()
    looks_a_line = REMINDER_SECONDS / POLL_SECONDS
    assert len(errors(said)) == math.ceil(90 / looks_a_line)
    assert f"events 1 to {200 - 190 + round(2 * looks_a_line)} are gone" in errors(said)[2]


def test_a_wiped_log_is_told_by_its_id(watched, said):
    """G1: FLUSHALL leaves nothing to count; the id in its record tells it, with what was."""
    watched.log.append(10)
    watched.poll()
    before = watched.log.examine().continuity.log
    watched.log.client.flushall()
    watched.poll()
    (line,) = errors(said)
    assert line.startswith(
        "DATA LOSS: the log was wiped, or replaced by another one: partition p01"
    )
    assert "events 1 to 10 are gone" in line
    assert watched.log.examine().continuity.gaps == watched.losses
    assert watched.losses == [
        Gap(P, 1, 10, 10, f"wiped:{before}", found_at=iso(watched.clock.now_ms()))
    ]
    assert watched.log.examine().continuity.log not in (None, before), "it was given a certificate"


def test_a_wiped_log_that_held_no_event_is_told_too(watched, said):
    """G1: events may have come between two looks, so a new id is a loss also of an empty log."""
    watched.poll()
    before = watched.log.examine().continuity.log
    watched.log.client.flushall()
    watched.poll()
    (line,) = errors(said)
    assert "it held no event when it was last read" in line
    (gap,) = watched.log.examine().continuity.gaps
    assert (gap.record, gap.missing) == (f"wiped:{before}", 0)


def test_a_wiped_log_that_went_on_is_told_all_the_same(watched, said):
    """G1: a log born anew and as long as before is another log, and no look is fooled by it."""
    watched.log.append(10)
    watched.poll()
    watched.log.client.flushall()
    reborn = Log(watched.log.settings)
    reborn.append(10)
    reborn.client.close()
    watched.poll(3)
    assert len(errors(said)) == 1
    assert [how_lost(gap) for gap in watched.losses] == ["wiped"]


def log_checks(watched: Watched) -> dict[str, Check]:
    """Return the doctor's checks of the log, by name."""
    topics = {topic.name for topic in LOG_TOPICS}
    checks = check_status(watched.log.settings, SYSTEM)
    return {check.name: check for check in checks if check.name in topics}


def test_a_loss_stays_until_it_is_dealt_with(watched, said):
    """G10: status and doctor show what workers saw, until the command of the remedy ends it."""
    watched.log.append(3)
    watched.poll()
    watched.log.client.flushall()
    watched.poll(2)
    check = log_checks(watched)["continuity"]
    assert not check.ok
    command, key, field = check.fix.split("redis-cli ")[1].split()
    assert command == "hdel"
    assert watched.log.client.hdel(key, field) == 1
    watched.poll()
    assert watched.subjects == []
    assert said.messages[-1].startswith("no longer: the log was wiped")
    assert all(check.ok for check in log_checks(watched).values())


def test_two_workers_write_one_loss(watched):
    """G1: whoever finds a loss first writes it down; the next one finds the same."""
    watched.log.append(3)
    watched.poll()
    other = Watched(watched.log, watched.clock)
    watched.log.client.flushall()
    watched.poll()
    other.poll()
    assert len(watched.losses) == 1
    assert len(other.subjects) == 1


def test_a_partition_that_began_anew_is_told(watched, said):
    """G1: a stream deleted with its counter counts from one again; the watch knows where it was."""
    watched.log.append(10)
    watched.settle()
    watched.log.client.delete(watched.log.key, watched.log.keys.state(P))
    watched.log.append(3)
    watched.poll(3)
    (line,) = errors(said)
    assert "assigns these numbers again: partition p01: events 1 to 10 are gone" in line
    (gap,) = watched.losses
    assert how_lost(gap) == "tail"
    watched.log.client.hdel(watched.log.keys.losses, gap.record)
    watched.poll(2)
    assert watched.losses == []


def test_an_older_state_is_told(server, watched, said):
    """G1: a Redis that comes back from an old snapshot lost what producers have forgotten."""
    watched.log.client.config_set("appendonly", "no")
    watched.log.append(10)
    watched.log.client.save()
    watched.log.append(5)
    watched.settle()
    server.kill()
    server.start(appendonly="no")
    watched.poll()
    (line,) = errors(said)
    assert "the log went back" in line
    assert "partition p01: events 11 to 15 are gone" in line


def test_a_lost_tail_that_comes_again_is_no_loss(server, watched, said):
    """G1: what the spools still keep is sent again: a crash that loses it is no alarm."""
    watched.log.client.config_set("appendonly", "no")
    watched.log.append(10)
    watched.settle()
    watched.log.client.save()
    watched.log.append(5)
    watched.poll()
    server.kill()
    server.start(appendonly="no")
    watched.poll()
    Log(watched.log.settings).append(15)  # the producer sends again what Redis lost
    watched.settle()
    assert errors(said) == []
    assert watched.losses == []


def test_a_crash_that_loses_nothing_is_no_loss(server, watched, said):
    """G1: a Redis killed and started again on its file is the same log."""
    watched.log.append(10)
    watched.settle()
    server.restart()
    watched.settle()
    assert errors(said) == []
    assert watched.watch.alarms == ()


def test_a_redis_that_keeps_nothing_comes_back_empty(make_redis, make_settings, fake_clock, said):
    """G1: a Redis without persistence that is started again lost the log, and the watch says so."""
    server = make_redis()
    watched = Watched(Log(make_settings(url=server.url, partitions=2)), fake_clock)
    watched.log.append(10)
    watched.poll()
    server.restart()
    watched.poll(2)
    assert len(errors(said)) == 1
    assert [how_lost(gap) for gap in watched.losses] == ["wiped"]


@pytest.mark.parametrize(
    ("option", "value", "code"),
    [
        ("maxmemory-policy", "allkeys-lru", "eviction_policy"),
        ("appendonly", "no", "no_append_only_file"),
    ],
)
def test_a_setting_changed_later_is_told(option, value, code, watched, said):
    """G1: a policy that evicts, or a file switched off, is an alarm also when it comes later."""
    good = str(dict(watched.log.client.config_get(option))[option])
    watched.log.client.config_set(option, value)
    watched.poll(2)
    assert [alarm.code for alarm in watched.watch.alarms] == [code]
    assert len(said.messages) == 1
    watched.log.client.config_set(option, good)
    watched.poll()
    assert watched.watch.alarms == ()
    assert said.messages[1].startswith("no longer: ")


def test_an_absent_redis_is_said_once(server, watched, said):
    """G9: a watch without Redis ends nothing, says so once, and goes on when it is back."""
    server.kill()
    watched.poll(3)
    assert len(said.messages) == 1
    assert said.messages[0].startswith("the log cannot be watched")
    server.start()
    watched.log.append(2)
    watched.log.client.xtrim(watched.log.key, maxlen=1, approximate=False)
    watched.poll()
    assert watched.subjects == ["p01:1"]


def test_a_loss_that_cannot_be_written_is_told_all_the_same(watched, said):
    """G1: a Redis that refuses writes keeps no watch from telling; it is written when it can be."""
    watched.log.append(10)
    watched.settle()
    watched.log.client.delete(watched.log.key, watched.log.keys.state(P))
    watched.log.client.config_set("maxmemory", 1)
    watched.poll(2)
    assert len([line for line in errors(said) if line.startswith("DATA LOSS")]) == 1
    assert watched.losses == []
    watched.log.client.config_set("maxmemory", 0)
    watched.poll()
    assert [how_lost(gap) for gap in watched.losses] == ["tail"]


def test_a_look_before_its_time_asks_nothing(watched):
    """G10: the watch may be called often, and looks every few seconds."""
    watched.log.append(2)
    watched.log.client.xtrim(watched.log.key, maxlen=1, approximate=False)
    watched.watch.poll(unreachable_client())
    assert watched.subjects == []
    watched.poll()
    assert watched.subjects == ["p01:1"]


@pytest.mark.parametrize("how", ["XTRIM", "XDEL", "DEL", "FLUSHALL"])
def test_it_is_told_within_ten_seconds(how, watched):
    """G7: whatever is done to the log, a running watch tells it within ten seconds."""
    log = watched.log
    log.append(10)
    watched.poll()
    until = watched.clock.monotonic() + 10
    match how:
        case "XTRIM":
            log.client.xtrim(log.key, maxlen=4, approximate=False)
        case "XDEL":
            log.client.xdel(log.key, log.entry(5))
        case "DEL":
            log.client.delete(log.key)
        case "FLUSHALL":
            log.client.flushall()

    while [alarm.code for alarm in watched.watch.alarms] != ["data_loss"]:
        watched.clock.advance(0.5)
        assert watched.clock.monotonic() <= until
        watched.watch.poll(log.client)
