"""Files are ingested into a real log: the stages, the growth of the log, the connections."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus_console.operations.ingest import files
from memorybus_console.operations.ingest.files import ingest_files
from memorybus_console.operations.ingest.report import StageStep
from redis import Redis


class Stages:
    """Notes the stages of an ingest: what, how many of which unit were done, and of how many."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, int, int | None]] = []

    @contextmanager
    def __call__(self, what: str, unit: str, total: int | None) -> Iterator[StageStep]:
        """Note a stage when it ends."""
        done = 0

        def step(count: int = 1, /) -> None:
            nonlocal done
            done += count

        yield step
        self.seen.append((what, unit, done, total))


@pytest.fixture(name="talk")
def _talk(tmp_path: Path) -> Path:
    """Return a file with two turns."""
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join(json.dumps({"role": "user", "content": text}) for text in "ab"))
    return path


def test_turns_are_published_in_one_stage(ready, talk):
    """What Redis takes at once is no stage of its own; the log has grown by turns and session."""
    stages = Stages()
    done = ingest_files(ready, [talk], user=None, agent=None, on_stage=stages)
    assert stages.seen == [("publish", "turns", 2, 2)]
    assert (done.files, done.turns, done.new_events, done.level) == (1, 2, 3, "logged")


def test_sending_is_a_stage_if_it_takes_long(ready, talk, monkeypatch):
    """Waiting for Redis counts the events that it has taken meanwhile."""
    slow, flush = iter((False,)), MemoryBus.flush
    unsent = iter((3, 0))

    def slowly(bus: MemoryBus, *args: object, **more: object) -> bool:
        return next(slow, True) and flush(bus, *args, **more)

    monkeypatch.setattr(MemoryBus, "flush", slowly)
    monkeypatch.setattr(MemoryBus, "unsent", property(lambda _: next(unsent)))
    stages = Stages()
    done = ingest_files(ready, [talk], user=None, agent=None, on_stage=stages)
    assert stages.seen == [("publish", "turns", 2, 2), ("send to Redis", "events", 3, 3)]
    assert done.level == "logged"


def test_no_connection_of_the_count_stays_open(ready, talk, monkeypatch):
    """G10: the log is counted twice, over connections that are closed."""
    open_now: set[int] = set()
    connect = files.connect_redis

    def connect_noted(settings: Settings) -> Redis:
        redis = connect(settings)
        close = redis.close

        def close_noted() -> None:
            open_now.discard(id(redis))
            close()

        open_now.add(id(redis))
        monkeypatch.setattr(redis, "close", close_noted)
        return redis

    monkeypatch.setattr(files, "connect_redis", connect_noted)
    done = ingest_files(ready, [talk], user=None, agent=None, on_stage=Stages())
    assert (done.new_events, open_now) == (3, set())
