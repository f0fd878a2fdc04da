"""Redis comes back as an older copy, or is flushed, under workers and agents that live (G4, G7)."""

import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from operator import sub
from pathlib import Path
from typing import Any

import pytest
from helpers.faults import sink
from helpers.faults.oracle import Receipt, Verdict, judge
from helpers.faults.results import counted
from helpers.faults.scale import rounds, times
from helpers.faults.trial import Trial, demand, sinks
from helpers.processes.waiting import wait_until
from helpers.redis.log import read_health
from helpers.redis.servers import RedisServer
from helpers.stories.scenario import patient
from memorybus.agent.client import MemoryBus
from memorybus.redis.keys import Keys
from memorybus_workers.archiving.archiver import run_once

pytestmark = [pytest.mark.fault, pytest.mark.timeout(300)]

SESSIONS = 64
TURNS = times(20, 5)
"""Turns of a session in each part of a run."""

CLASSES = (*sink.CLASSES, "Many")

SEALING: dict[str, Any] = {
    "partitions": 16,
    "seal_after": 0.0,
    "segment_age": 5.0,
    "spool_keep": 0.2,
}
"""Half a second between an archiver's looks, so that lanes are there before it."""


class Story:
    """The turns of one run, published part by part, and how far the lanes are with them.

    Attributes:
        receipts: what was published, in order.
    """

    def __init__(self, trial: Trial, bus: MemoryBus) -> None:
        self.receipts: list[Receipt] = []
        self._trial = trial
        self._bus = bus
        self._sessions = [bus.session(f"s{number}", warm=False) for number in range(SESSIONS)]
        self._keys = Keys(trial.settings.namespace)

    def publish(self, turns: int = TURNS) -> set[str]:
        """Let every session say some turns until only the log has them; return their ids."""
        first = len(self.receipts)
        for turn in range(first // SESSIONS, first // SESSIONS + turns):
            for session in self._sessions:
                said = session.turn_completed(f"turn {turn}", "ok", ordinal=turn)
                self.receipts.append(Receipt(said.event_id, session.id, turn))
        assert self._bus.flush("logged", 60), self._bus.problem
        (spool,) = self._trial.settings.spool_dir.glob("*.db")
        with closing(sqlite3.connect(f"file:{spool}?mode=ro", uri=True)) as db:
            held = "select count(*) from events"
            wait_until(lambda: db.execute(held).fetchone() == (0,), "the spool is empty", 30)
        return {receipt.event_id for receipt in self.receipts[first:]}

    def wait_applied(self) -> None:
        """Wait until every provider has passed all that the log and the archive have."""
        wait_until(lambda: self._trial.crew.checked() and self._is_applied(), "all is applied", 90)

    def _is_applied(self) -> bool:
        ends = map(max, self._given(), self.sealed())
        return all(
            self._number(self._keys.lane(partition, name), "n") >= end
            for partition, end in enumerate(ends)
            for name in self._trial.sinks
        )

    def seal(self) -> list[int]:
        """Seal everything; return the last sealed number of each partition."""
        run_once(patient(self._trial.settings))
        wait_until(lambda: self.sealed() == self._given(), "all is sealed", 60)
        return self.sealed()

    def sealed(self) -> list[int]:
        """Return the last sealed number that Redis knows of each partition."""
        return [self._number(state, "sealed") for state in self._states()]

    def _given(self) -> list[int]:
        return [self._number(state, "n") for state in self._states()]

    def _states(self) -> list[str]:
        return [self._keys.state(partition) for partition in range(SEALING["partitions"])]

    def _number(self, key: str, field: str) -> int:
        return int(self._trial.client.hget(key, field) or 0)

    def verdicts(self) -> dict[str, Verdict]:
        """Judge what every sink holds."""
        trial = self._trial
        return {
            name: judge(self.receipts, trial.effects(name), parked=trial.parked(name))
            for name in trial.sinks
        }


@contextmanager
def applied_story(trial: Trial) -> Iterator[Story]:
    """Start two workers, and publish until all is applied; the bus is open while the block runs."""
    trial.crew.start(2)
    trial.crew.wait_ready()
    with MemoryBus.connect(trial.settings) as bus:
        story = Story(trial, bus)
        story.publish()
        story.wait_applied()
        yield story


@contextmanager
def older_copy(server: RedisServer, directory: Path) -> Iterator[None]:
    """Copy the server's files now; at the end it is killed, and starts on that copy."""
    shutil.copytree(server.directory, directory, ignore=shutil.ignore_patterns("s", "log"))
    yield
    server.kill()
    for path in server.directory.glob("appendonly*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(directory, server.directory, dirs_exist_ok=True)
    server.start()


def asked(trial: Trial, name: str) -> int:
    """Return how often a sink was asked for an event."""
    files = trial.sink(name).glob("asked.*")
    return sum(len(file.read_text().splitlines()) for file in files)


@pytest.mark.parametrize("number", rounds(3))
def test_an_older_copy_of_redis_comes_back(make_trial, aof_redis, tmp_path, report, number):
    """G4: what only the archive still has is asked for, or waits for an operator; nothing twice."""
    trial = make_trial(aof_redis, *CLASSES, **SEALING)
    with applied_story(trial) as story:
        with older_copy(aof_redis, tmp_path / "copy"):
            gap = story.publish()
            story.wait_applied()
            sealed = story.seal()
        wait_until(lambda: story.sealed() == sealed, "Redis knows the archive's end", 30)
        story.publish(1)
        story.wait_applied()
    trial.crew.stop()
    verdicts = story.verdicts()
    report(faults=1, asked=asked(trial, "lookup"), **counted(verdicts.values()))
    assert {name: verdict.faults() for name, verdict in verdicts.items()} == {
        name: [] for name in trial.sinks
    }
    assert asked(trial, "lookup") >= len(gap)
    assert not trial.parked("lookup")
    (finding,) = [f for f in read_health(trial.settings).alarms if f.code == "archive_ahead"]
    assert "restored copy" in finding.text


@pytest.mark.parametrize("number", rounds(3))
def test_agents_publish_before_an_older_redis_knows_its_archive(
    make_trial, aof_redis, tmp_path, report, number
):
    """G4, G7: numbers that the archive has are given anew by themselves; nothing is lost."""
    trial = make_trial(aof_redis, *CLASSES, **SEALING)
    with applied_story(trial) as story:
        with older_copy(aof_redis, tmp_path / "copy"):
            story.publish()
            story.wait_applied()
            sealed = story.seal()
            trial.crew.stop()
        early = story.publish(1)
        assert story.sealed() != sealed
        trial.crew.start(2)
        wait_until(lambda: min(map(sub, story.sealed(), sealed)) >= 0, "the end is known", 30)
        story.publish(1)
        story.seal()
        story.wait_applied()
    trial.crew.stop()
    verdicts = story.verdicts()
    report(faults=1, early=len(early), **counted(verdicts.values()))
    assert not any(verdict.lost for verdict in verdicts.values())
    calls = SEALING["partitions"]  # one in each lane that was taken from its owner
    faults = {name: verdict.faults(may_be_stale=calls) for name, verdict in verdicts.items()}
    assert {name: faults[name] for name in faults if name != "blind"} == {
        name: [] for name in faults if name != "blind"
    }
    assert not read_health(trial.settings).archive.damaged


@pytest.mark.parametrize("number", rounds(3))
def test_redis_is_flushed_under_workers(make_trial, aof_redis, tmp_path, report, number):
    """G4, G7: after FLUSHALL no lane applies the old log's archive, and none stands still.

    A blind provider may get the call again that each lane had under way as it lost its lease.
    """
    slow = sinks(tmp_path / "sinks", *CLASSES, calls_per_second=SESSIONS)
    del slow["provider"]["transactional"]["calls_per_second"]  # its calls cannot be limited
    trial = make_trial(aof_redis, batch=2, hot_window=0.0, **SEALING, **slow)
    with MemoryBus.connect(trial.settings) as bus:
        story = Story(trial, bus)
        story.publish()
        story.seal()
        trial.crew.start(2)
        wait_until(lambda: all(map(trial.effects, trial.sinks)), "all read the archive", 60)
        trial.fault("flush")
        trial.client.flushall()
        later = story.publish()
        story.wait_applied()
        story.seal()
    trial.crew.stop()
    demand(trial.faults, 1)
    verdicts = story.verdicts()
    lost = {name: len(later & set(verdict.lost)) for name, verdict in verdicts.items()}
    report(faults=1, **counted(verdicts.values()) | {"lost": sum(lost.values())})
    assert lost == dict.fromkeys(lost, 0)
    again = {name: _repeated_by_lane(trial, name, verdict) for name, verdict in verdicts.items()}
    assert all(count == 1 for count in again.pop("blind").values())
    assert not any(again.values())


def _repeated_by_lane(trial: Trial, name: str, verdict: Verdict) -> Counter[int]:
    """Count the effects that a sink had too often, by lane."""
    lanes = {effect.event_id: effect.lane for effect in trial.effects(name)}
    return Counter(lanes[event_id] for event_id in Counter(verdict.twice).elements())
