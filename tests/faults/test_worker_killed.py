"""SIGKILL for workers at every named place, by delivery class (G4, G5)."""

from collections import Counter

import pytest
from helpers.processes.processes import Child, Spawn
from helpers.providers.recording import effects, texts
from helpers.stories.scenario import environ, home, patient, recorded, thread_worker, wait_applied
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings

COUNT = 30
PLACES = ["lane.before_apply", "lane.after_apply", "lane.after_commit", "recording.after_effect"]
MAY_DOUBLE = {"Transactional": 0, "Keyed": 0, "Lookup": 0, "Blind": 1}


def fill(settings: Settings, sessions: tuple[str, ...] = ("a", "b"), count: int = COUNT) -> None:
    """Publish numbered turns of some sessions."""
    with MemoryBus.connect(settings) as bus:
        for number in range(count):
            for name in sessions:
                bus.session(name, warm=False).turn_completed(f"{name} {number:04d}", "ok")
        assert bus.flush("logged", 15)


def dying_worker(spawn: Spawn, settings: Settings, crash: str) -> Child:
    """Start a worker that kills itself at a place."""
    return spawn(
        *("-m", "memorybus_workers", "worker", "--jobs", "0"),
        env=environ(settings) | {"MEMORYBUS_CRASH_AT": crash},
    )


def doubled(settings: Settings) -> int:
    """Count the effects that happened more than once."""
    return sum(count - 1 for count in Counter(e.event_id for e in effects(home(settings))).values())


def assert_in_order(settings: Settings, sessions: tuple[str, ...], count: int = COUNT) -> None:
    """Fail unless every turn is there, those of a session in order, repeats apart."""
    found = texts(home(settings))
    for name in sessions:
        mine = list(dict.fromkeys(text for text in found if text.startswith(f"{name} ")))
        assert mine == [f"{name} {number:04d}" for number in range(count)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", list(MAY_DOUBLE))
def test_a_worker_dies_at_a_named_place(redis_client, make_settings, spawn, kind, place):
    """G4: after a crash the next owner completes all: once, or blindly with one repeat."""
    settings = make_settings(lease=0.6, call_timeout=0.3, batch=8, **recorded(kind))
    fill(settings)
    nth = 2 if place.startswith("lane") else 11
    first = dying_worker(spawn, settings, f"{place}:{nth}")
    assert first.wait() == -9, first.output()
    with thread_worker(patient(settings)):  # a lane that it lost might repeat an event as well
        wait_applied(redis_client, settings)
    assert_in_order(settings, ("a", "b"))
    assert doubled(settings) <= MAY_DOUBLE[kind]


@pytest.mark.parametrize(
    "place", ["builtin.before_commit", "builtin.after_commit", "builtin.after_file"]
)
@pytest.mark.parametrize("nth", [1, 2])
def test_builtin_files_survive_a_dying_worker(redis_client, make_settings, spawn, place, nth):
    """G4: files and checkpoint agree after a crash between them: no entry twice, none missing."""
    settings = make_settings(lease=0.6, call_timeout=0.3, batch=5, providers=("builtin",))
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        for number in range(20):
            session.memory_written("add", f"note {number:02d} of the garden")
        session.memory_written("replace", "a better note", old_text="note 07")
        session.memory_written("remove", old_text="note 03")
        assert bus.flush("logged", 15)
    first = dying_worker(spawn, settings, f"{place}:{nth}")
    assert first.wait() == -9, first.output()
    with thread_worker(patient(settings)):
        wait_applied(redis_client, settings, "builtin")
    (file,) = settings.provider_home("builtin").rglob("MEMORY.md")
    entries = [entry.strip() for entry in file.read_text().split("§")]
    wanted = [f"note {number:02d} of the garden" for number in range(20)]
    wanted[7] = "a better note"
    del wanted[3]
    assert entries == wanted
