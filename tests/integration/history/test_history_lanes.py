"""G7: a lane that fell behind goes on from the archive, also while the log is trimmed under it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from helpers.archive.sealed_log import QUICK, newest_manifest
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.scenario import (
    NAME,
    PATIENT,
    home,
    log_length,
    neighbour_sessions,
    partition,
    recorded,
    say,
    thread_worker,
    wait_applied,
)
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.health.finding import Finding
from memorybus.health.monitor import read_status
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus_workers.archiving.archiver import run_once

CLASSES = ("Transactional", "Keyed", "KeyedSide", "Lookup", "LookupSide", "Recording")


def spoken(bus: MemoryBus, session: str, first: int, count: int) -> list[str]:
    """Publish numbered turns; return their texts."""
    words = [f"{session} {number:04d}" for number in range(first, first + count)]
    say(bus, session, *words)
    assert bus.flush("logged", 10)
    return words


def of_session(found: list[str], session: str) -> list[str]:
    """Return the texts of one session, in the order in which they were applied."""
    return [text for text in found if text.startswith(f"{session} ")]


@contextmanager
def sealing_on(settings: Settings) -> Iterator[None]:
    """Seal and trim again and again."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(0.02):
            run_once(settings)

    thread = threading.Thread(target=run, name="test-sealing")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("kind", CLASSES)
def test_a_lane_that_fell_behind_crosses_the_seam(redis_client, make_settings, kind):
    """G3, G4, G7: of each class nothing is lost or doubled while the log is trimmed under it."""
    settings = make_settings(**QUICK, **PATIENT, batch=20, window=64, **recorded(kind))
    first, second = neighbour_sessions(settings, 2)
    with MemoryBus.connect(settings) as bus:
        said = {name: spoken(bus, name, 0, 60) for name in (first, second)}
        run_once(settings)
        assert log_length(redis_client, settings) <= settings.partitions
        with sealing_on(settings), thread_worker(settings):
            for part in range(1, 4):
                for name in said:
                    said[name] += spoken(bus, name, part * 60, 20)
            wait_applied(redis_client, settings)
    found = texts(home(settings))
    assert {name: of_session(found, name) for name in said} == said


def test_a_checkpoint_that_was_trimmed_goes_on(redis_client, make_settings):
    """G7: a lane that stands where the log no longer reaches goes on from the archive."""
    settings = make_settings(**QUICK, **PATIENT, **recorded("Transactional"))
    with MemoryBus.connect(settings) as bus:
        said = spoken(bus, "s", 0, 10)
        with thread_worker(msgspec.structs.replace(settings, seal_after=1e9)):
            wait_applied(redis_client, settings)
        said += spoken(bus, "s", 10, 30)
        run_once(settings)
        assert log_length(redis_client, settings) <= settings.partitions
        with thread_worker(settings):
            wait_applied(redis_client, settings)
    assert texts(home(settings)) == said


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("strangers", [1, 2])
def test_a_lane_passes_a_strangers_entry_that_was_trimmed(
    redis_client, make_settings, kind, strangers
):
    """G3, G7: a lane that stands at another's entry goes on, though only the archive has that."""
    settings = make_settings(**QUICK, **PATIENT, **recorded(kind))
    with MemoryBus.connect(settings) as bus:
        said = spoken(bus, "s", 0, 3)
        for _ in range(strangers):
            redis_client.xadd(Keys(settings.namespace).log(partition(settings, "s")), {"x": "y"})
        said += spoken(bus, "s", 3, 3)
        run_once(settings)
        assert log_length(redis_client, settings) <= settings.partitions
        with thread_worker(settings):
            wait_until(lambda: texts(home(settings)) == said, "all is applied, each once")


def halts(settings: Settings) -> list[Finding]:
    """Return the alarms of lanes that stand still."""
    return [alarm for alarm in read_status(settings).alarms if alarm.code == "lane_halted"]


def test_a_damaged_segment_stops_its_lane_alone(redis_client, make_settings):
    """G7: damage stops the lane that needs it, by name; others go on, and it does once mended."""
    settings = make_settings(**QUICK, **PATIENT, **recorded("Keyed"))
    keys = Keys(settings.namespace)
    names = ("s0", "s1", "s2", "s3")
    with MemoryBus.connect(settings) as bus:
        said = [spoken(bus, name, 0, 60) for name in names]
        run_once(settings)
        path = sorted(Path(settings.data_dir).rglob("p00/segments/*.parquet"))[1]
        whole = path.read_bytes()
        path.write_bytes(whole[:100] + b"x" + whole[101:])
        quiet = msgspec.structs.replace(settings, seal_after=1e9)
        with thread_worker(quiet):
            wait_until(lambda: halts(settings), "status tells that a lane is stopped")
            (alarm,) = halts(settings)
            assert alarm.subject == f"{NAME}:p00"
            assert path.name in alarm.text
            last = int(redis_client.hget(keys.state(1), "n") or 0)
            wait_until(
                lambda: int(redis_client.hget(keys.lane(1, NAME), "n") or 0) == last,
                "the other lane goes on",
            )
            assert redis_client.hget(keys.lane(0, NAME), "n") == b"50"
            path.write_bytes(whole)
            wait_applied(redis_client, settings, timeout=40)
            wait_until(lambda: not halts(settings), "status tells that nothing is stopped")
    assert sorted(texts(home(settings))) == sorted(text for words in said for text in words)


def test_a_lane_that_lags_costs_no_redis_memory(redis_client, make_settings, flag):
    """G7: a provider that is down keeps no event in Redis, and gets each of them later."""
    settings = make_settings(**QUICK, **PATIENT, **recorded("Keyed"))
    client = connect_redis(settings)
    with MemoryBus.connect(settings) as bus:
        say(bus, "s", f"!unavailable={flag}")
        assert bus.flush("logged", 10)
        with thread_worker(settings):
            said = spoken(bus, "s", 0, 120)
            wait_until(
                lambda: log_length(client, settings) <= settings.partitions,
                "the log is trimmed although a lane needs it",
            )
            assert len(texts(home(settings))) == 0
            flag.unlink()
            wait_applied(redis_client, settings, timeout=40)
    client.close()
    assert texts(home(settings))[1:] == said


@pytest.mark.parametrize("kind", ["Lookup", "Recording"])
def test_a_lane_waits_for_the_archive_that_has_its_checkpoint(redis_client, make_settings, kind):
    """G4, G7: a lane halts while the newest manifest is away, and then nothing comes twice."""
    settings = make_settings(**QUICK, **PATIENT, **recorded(kind))
    never = msgspec.structs.replace(settings, seal_after=1e9)
    with MemoryBus.connect(settings) as bus:
        said = spoken(bus, "s", 0, 20)
        run_once(settings)
        said += spoken(bus, "s", 20, 20)
        with thread_worker(never):
            wait_applied(redis_client, settings)
        said += spoken(bus, "s", 40, 20)
        run_once(settings)
        assert log_length(redis_client, settings) <= settings.partitions
        newest = newest_manifest(settings, partition(settings, "s"))
        away = newest.rename(newest.with_name("away"))
        with thread_worker(never):
            wait_until(lambda: halts(settings), "status tells that a lane is stopped")
            away.rename(newest)
            wait_applied(redis_client, settings, timeout=40)
    assert texts(home(settings)) == said
