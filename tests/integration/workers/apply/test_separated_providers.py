"""A provider that ends its processes gets one of its own: nobody else's work ends with it (G9)."""

import json
import signal
from collections.abc import Callable
from typing import Any

import psutil
import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.processes import Child, Spawn, children_of
from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, texts
from helpers.stories.scenario import environ, home, wait_applied, words_of
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.health.monitor import read_status

NAMES = ("bad", "good", "asked")
SEPARATED = "provider bad gets its own worker process"
APPLIED = 5.0
"""Seconds in which an event is applied, whatever a neighbour does: lanes are handed over in 2, and
the rest is a busy machine's."""
ANSWERED = 12.0
"""Seconds in which a recall is answered: one whose process is replaced meanwhile is found and asked
again within 6, and the rest is a busy machine's."""
HANGING_SECONDS = 90.0
"""Seconds in which eight calls have hung: each is tried after a longer pause, 5 s at most."""


@pytest.fixture(name="scene")
def _scene(redis_client: redis.Redis, make_settings: MakeSettings) -> Callable[[str], Settings]:
    """Make settings of a provider that does a misdeed at every event, and of two sound ones."""

    def make(misdeed: str) -> Settings:
        tables = {
            "bad": {"kind": "helpers.providers.recording:Sick", "misdeed": misdeed},
            "good": {"kind": "helpers.providers.recording:Transactional"},
            "asked": {"kind": "helpers.providers.recalls:Answering"},
        }
        timings = {"call_timeout": 0.5, "lease": 2.0, "partitions": 4}
        return make_settings(**timings, providers=NAMES, provider=tables)

    return make


class Traffic:
    """Conversations, one after the other: what is said is applied, what is asked is answered."""

    def __init__(self, bus: MemoryBus, settings: Settings) -> None:
        self.said = 0
        self.applied_in = self.answered_in = 0.0
        self._settings = settings
        self._bus = bus

    def go_on(self) -> None:
        """Say and ask one thing more, and wait for both; note how long that took."""
        text, begun = f"number {self.said}", SYSTEM.monotonic()
        session = self._bus.session(text)
        session.turn_completed(text, "ok")
        session.queue_prefetch(text)
        self.said += 1
        wait_until(lambda: self._applied() == self.said, f"{text} is applied")
        self.applied_in = max(self.applied_in, SYSTEM.monotonic() - begun)
        wait_until(lambda: f"an answer to {text}" in session.prefetch(), f"{text} is answered")
        self.answered_in = max(self.answered_in, SYSTEM.monotonic() - begun)

    def begin(self) -> None:
        """Go on once, and measure from then on: recall processes start after their worker."""
        self.go_on()
        self.applied_in = self.answered_in = 0.0

    def assert_in_time(self) -> None:
        """Fail if an event or a recall had to wait for a neighbour."""
        assert self.applied_in < APPLIED
        assert self.answered_in < ANSWERED

    def until(self, reached: Callable[[], Any], what: str) -> None:
        """Go on until something is so."""

        def looked() -> Any:
            self.go_on()
            return reached()

        wait_until(looked, what, HANGING_SECONDS)

    def _applied(self) -> int:
        return len(texts(home(self._settings, "good")))


def start(spawn: Spawn, settings: Settings, *words: str) -> Child:
    """Start the command that people start, and wait until it is ready."""
    child = spawn("-m", "memorybus", *words, env=environ(settings))
    child.wait_output('"ready"')
    return child


def serving(child: Child, name: str) -> list[psutil.Process]:
    """Return the worker processes that serve a provider."""
    return [p for p in children_of(child.pid) if name in _served(p)]


def _served(process: psutil.Process) -> list[str]:
    words = words_of(process)
    return words[words.index("--providers") + 1].split(",") if "--providers" in words else []


@pytest.mark.long
def test_calls_that_hang_take_nobody_elses_lanes(redis_client, scene, spawn, flag):
    """G9: eight calls of one provider hang: others apply and answer in time, and it starts anew."""
    settings = scene(f"!hang={flag}")
    with MemoryBus.connect(settings) as bus:
        traffic = Traffic(bus, settings)
        child = start(spawn, settings, "worker")
        traffic.begin()
        (before,) = serving(child, "good")
        traffic.until(
            lambda: SEPARATED in child.output(), "the provider that hangs gets its own process"
        )
        traffic.until(lambda: serving(child, "good") != [before], "another serves the others")
        traffic.until(lambda: not before.is_running(), "the process with the hung threads ends")
        (alone,) = serving(child, "bad")
        traffic.until(lambda: alone.pid in pids(settings, "bad"), "it is called in its own process")
        traffic.assert_in_time()
        assert [one.name for one in read_status(settings).providers] == list(NAMES)
        wait_until(lambda: len(read_status(settings).workers) == 2, "status shows both workers")
        flag.unlink()
        wait_applied(redis_client, settings, "bad", HANGING_SECONDS)
    said = [f"number {number}" for number in range(traffic.said)]
    assert texts(home(settings, "good")) == said  # one was applied before the next was said
    assert child.terminate() == 0, child.output()
    assert "ended (exit code" not in child.output(), "no process ended of it"
    wait_until(lambda: spawn.descendants() == [], "all processes have ended")


def pids(settings: Settings, name: str) -> set[int]:
    """Return the processes in which a provider was called."""
    path = home(settings, name) / "calls.jsonl"
    return {json.loads(line)[0] for line in path.read_text().splitlines()}


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_call_that_ends_its_process_does_so_alone_then(
    scene, redis_client, spawn, flag, processes
):
    """G9: a provider whose event killed a worker, tried alone, kills none that others use."""
    settings = scene(f"!exit={flag}")
    with MemoryBus.connect(settings) as bus:
        traffic = Traffic(bus, settings)
        child = start(spawn, settings, "worker", "--processes", processes)
        traffic.until(lambda: SEPARATED in child.output(), "the deadly one gets its own process")
        count = int(processes)
        traffic.until(lambda: sound(child, count), "others serve without it")
        there = sound(child, count)
        ended = child.output().count("the worker process of bad ended (exit code 9)")
        traffic.begin()
        traffic.until(
            lambda: child.output().count("the worker process of bad ended (exit code 9)") > ended,
            "it ends its own process",
        )
        assert sound(child, count) == there
        traffic.assert_in_time()
    assert len(calls(home(settings, "bad"))) > 1


def sound(child: Child, count: int) -> list[psutil.Process]:
    """Return the processes that serve the others, once all of them serve nothing else."""
    found = serving(child, "good")
    alone = len(found) == count and not any("bad" in _served(one) for one in found)
    return found if alone else []


@pytest.mark.parametrize("command", ["worker", "up"])
def test_a_single_worker_that_is_killed_is_replaced(scene, redis_client, spawn, command):
    """G9: kill -9 of the only worker: another goes on, without anybody's doing."""
    settings = scene("!none")
    with MemoryBus.connect(settings) as bus:
        traffic = Traffic(bus, settings)
        child = start(spawn, settings, command, "--json")
        traffic.go_on()
        (worker,) = _workers(spawn)
        worker.send_signal(signal.SIGKILL)
        traffic.go_on()
        wait_until(lambda: _workers(spawn) not in ([], [worker]), "another worker runs")
    assert "worker process 1 of 1 ended (exit code -9); another starts in 0.5 s" in child.output()
    assert child.terminate() == 0, child.output()


def _workers(spawn: Spawn) -> list[psutil.Process]:
    return [process for process in spawn.descendants() if "--among" in words_of(process)]
