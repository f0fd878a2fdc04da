"""Child processes for tests: an agent that publishes numbered turns, and workers.

``python -m helpers.stories.scenario --session s --count 50`` prints a turn's number once `publish`
has returned for it, and nothing for one that was not accepted.
"""

import argparse
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import psutil
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings, load, to_environ
from memorybus.events import Scope
from memorybus.recall.queue import RecallQueue
from memorybus.redis.connect import connect_jobs
from memorybus.redis.keys import Keys, partition_of, session_key
from memorybus_workers.hosting.host import ProviderHost
from memorybus_workers.lanes.context import InstanceContext
from memorybus_workers.processes.worker import Worker

from helpers.processes.processes import Child, Spawn, children_of
from helpers.processes.waiting import wait_until

if TYPE_CHECKING:
    import pytest

TESTS = Path(__file__).parents[2]
NAME = "rec"
"""The provider instance of most tests."""

PATIENT: Any = {"lease": 30.0, "call_timeout": 20.0}
"""Settings where nothing hangs: a machine that stands still for seconds costs no worker its lanes,
and makes no call look as if it hung, which a ``blind`` backend would be sent twice (G4)."""


def recorded(kind: str, **options: Any) -> dict[str, Any]:
    """Return the settings of one recording provider, named `NAME`."""
    table = {"kind": f"helpers.providers.recording:{kind}", **options}
    return {"providers": (NAME,), "provider": {NAME: table}}


def begin_after_a_failure(monkeypatch: "pytest.MonkeyPatch") -> None:
    """Let the provider of every worker of this process seem down: its first call is a probe."""
    init = ProviderHost.__init__

    def begin(self: ProviderHost, context: InstanceContext) -> None:
        init(self, context)
        self._breaker.note_failure(SYSTEM.monotonic())

    monkeypatch.setattr(ProviderHost, "__init__", begin)


def patient(settings: Settings) -> Settings:
    """Return settings with `PATIENT`."""
    return msgspec.structs.replace(settings, **PATIENT)


def environ(settings: Settings) -> dict[str, str]:
    """Return the environment of a child that finds these settings and the test helpers."""
    return to_environ(settings, {}) | {"PYTHONPATH": str(TESTS)}


def agent(spawn: Spawn, settings: Settings, *words: str | int | Path) -> Child:
    """Start an agent (see `main`)."""
    return spawn("-m", "helpers.stories.scenario", *map(str, words), env=environ(settings))


def worker(spawn: Spawn, settings: Settings, *, jobs: int = 0, wait: bool = True) -> Child:
    """Start a worker process, and wait until it owns what it can get."""
    child = spawn("-m", "memorybus_workers", "worker", "--jobs", str(jobs), env=environ(settings))
    if wait:
        child.wait_output('"ready":true')
    return child


def recalling(settings: Settings, worker: psutil.Process) -> psutil.Process:
    """Ask for a recall of the first provider; return the process that a worker starts for it."""
    with connect_jobs(settings) as jobs:
        RecallQueue(jobs, settings, settings.providers[0]).put("s")
    return wait_until(lambda: _recalls(worker), "a recall process is started")[0]


def _recalls(worker: psutil.Process) -> list[psutil.Process]:
    """Return a worker's recall processes; one that is only forked still looks like the worker."""
    return [child for child in children_of(worker.pid) if "jobs" in words_of(child)]


def words_of(process: psutil.Process) -> list[str]:
    """Return a process's command line; nothing if it has ended."""
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


@contextmanager
def thread_worker(
    settings: Settings, providers: Sequence[str] = (), *, only: str = ""
) -> Iterator[Worker]:
    """Run a worker on a thread of this process: quick, and without recall processes."""
    names = () if only else providers or settings.providers
    running = Worker(settings, names, 0, only=only)
    ready = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            running.run(lambda _: ready.set())
        except BaseException as error:
            failed.append(error)
            ready.set()

    thread = threading.Thread(target=run, name="test-worker", daemon=True)
    thread.start()
    assert ready.wait(45), "the worker is not ready"
    try:
        yield running
    finally:
        running.stop()
        thread.join(45)
        assert not failed, f"the worker ended by {failed[0]!r}"
        assert not thread.is_alive(), "the worker does not end"


def home(settings: Settings, name: str = NAME) -> Path:
    """Return where a provider instance keeps its state."""
    return settings.provider_home(name)


def say(bus: MemoryBus, session: str, *words: str) -> None:
    """Publish turns of one session."""
    for text in words:
        bus.session(session, warm=False).turn_completed(text, "ok")


def publish(settings: Settings, session: str, *words: str) -> None:
    """Publish turns of one session, and see them in the log."""
    with MemoryBus.connect(settings) as bus:
        say(bus, session, *words)
        assert bus.flush("logged", 25)


def key_of(settings: Settings, session: str) -> str:
    """Return the order key of a root session of whom the settings name."""
    scope = Scope(agent=settings.agent, user=settings.user, workspace=settings.workspace)
    return session_key(scope, session)


def partition(settings: Settings, session: str) -> int:
    """Return the partition of a root session's events, for whom the settings name."""
    return partition_of(key_of(settings, session), settings.partitions)


def spread_sessions(settings: Settings, count: int, prefix: str = "s") -> list[str]:
    """Return session ids that lie in different partitions."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < count:
        name = f"{prefix}{number}"
        found.setdefault(partition(settings, name), name)
        number += 1
    return list(found.values())[:count]


def neighbour_sessions(settings: Settings, count: int, prefix: str = "t") -> list[str]:
    """Return session ids that share a partition."""
    first = f"{prefix}0"
    names = (f"{prefix}{number}" for number in range(100_000))
    same = (name for name in names if partition(settings, name) == partition(settings, first))
    return [next(same) for _ in range(count)]


def numbers(output: str) -> list[int]:
    """Return the turns that an agent said were accepted."""
    return [int(line) for line in output.splitlines() if line.isdigit()]


def leave_dead(client: Any, lane: str, *numbers: int, deaths: int = 1) -> None:
    """Leave a lane as an owner leaves it that dies while it calls its provider for some events.

    Args:
        client: of the log's server.
        lane: the key of the lane's hash.
        numbers: the events, by n; none if the owner had noted nothing.
        deaths: how many such deaths each of them is noted with, this one included.
    """
    run = client.info("server")["run_id"]
    tries = msgspec.json.encode(dict.fromkeys(numbers, deaths))
    fields = {"owner": "somebody", "run": run} | ({"tries": tries} if numbers else {})
    client.hset(lane, mapping=fields)


def log_length(client: Any, settings: Settings) -> int:
    """Count the entries of all partitions."""
    keys = Keys(settings.namespace)
    with client.pipeline(transaction=False) as asked:
        for p in range(settings.partitions):
            asked.xlen(keys.log(p))
        return sum(asked.execute())


def backlog(client: Any, settings: Settings, name: str = NAME) -> int:
    """Count what a provider has not passed, by dense numbers."""
    keys = Keys(settings.namespace)
    with client.pipeline(transaction=False) as asked:  # one round trip: waiting asks often
        for p in range(settings.partitions):
            asked.hget(keys.state(p), "n")
            asked.hget(keys.lane(p, name), "n")
        found = [int(number or 0) for number in asked.execute()]
    return sum(max(0, head - passed) for head, passed in zip(found[::2], found[1::2], strict=True))


def wait_applied(client: Any, settings: Settings, name: str = NAME, timeout: float = 45) -> None:
    """Wait until a provider has passed everything in the log."""
    wait_until(
        lambda: backlog(client, settings, name) == 0, f"{name} has passed the whole log", timeout
    )


def main() -> None:
    """Publish numbered turns as the arguments say; print each number once it is accepted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--session", default="s")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--flush", type=float, default=0)
    parser.add_argument("--flush-every", type=int, default=0, help="turns")
    parser.add_argument("--hold", action="store_true", help="stay until killed")
    parser.add_argument("--padding", type=int, default=0)
    parser.add_argument("--gate", type=Path, help="half of the turns wait until this file is gone")
    options = parser.parse_args()
    bus = MemoryBus.connect(load())
    session = bus.session(options.session)
    for number in range(options.first, options.first + options.count):
        while options.gate and number == options.count // 2 and options.gate.exists():
            threading.Event().wait(0.01)
        text = f"turn {number:05d}" + " x" * options.padding
        session.turn_completed(text, "ok", ordinal=number)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        if options.flush_every and number % options.flush_every == 0:
            bus.flush("logged", 10)
    if options.flush:
        print("flushed" if bus.flush("logged", options.flush) else "not flushed", flush=True)
    if options.hold:
        print("holding", flush=True)
        threading.Event().wait()
    bus.close()


if __name__ == "__main__":
    main()
