"""Worker processes as people run and end them: one, or several under a supervisor."""

import json
import signal
from pathlib import Path

import psutil
import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.processes import Child, Spawn, children_of
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.described import troubles
from helpers.stories.scenario import environ, home, recalling, recorded, wait_applied, words_of
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.health.monitor import read_status

WORKER = ("-m", "memorybus_workers", "worker", "--jobs", "0")


def supervisor(spawn: Spawn, settings: Settings, *words: str, count: int = 2) -> Child:
    """Start a supervisor and wait until its workers are ready."""
    child = spawn(*WORKER, "--processes", str(count), *words, env=environ(settings))
    child.wait_output('"ready":true')
    return child


def shares(settings: Settings) -> list[int]:
    """Return how many lanes each worker owns."""
    return sorted(worker.lanes for worker in read_status(settings).workers)


def workers(child: Child) -> list[psutil.Process]:
    """Return the worker processes of a supervisor."""
    return [p for p in children_of(child.pid) if "worker" in words_of(p)]


def publish(settings: Settings, first: int, count: int = 20, sessions: int = 8) -> None:
    """Publish numbered turns of several sessions, and see them in the log."""
    with MemoryBus.connect(settings) as bus:
        for number in range(first, first + count):
            for name in range(sessions):
                session = bus.session(f"s{name}", warm=False)
                session.turn_completed(f"s{name} {number:04d}", "ok", ordinal=number)
        assert bus.flush("logged", 25)


def assert_once_in_order(settings: Settings, count: int, sessions: int = 8) -> None:
    """Fail unless every turn took effect once, those of a session in order."""
    found = texts(home(settings))
    for name in range(sessions):
        mine = [text for text in found if text.startswith(f"s{name} ")]
        assert mine == [f"s{name} {number:04d}" for number in range(count)]


def line_of_json(child: Child) -> str:
    """Return the one line of JSON that a command has printed."""
    (line,) = [line for line in child.output().splitlines() if line.startswith("{")]
    return line


def leases(client: redis.Redis) -> list[bytes]:
    """Return the leases that are held."""
    return list(client.scan_iter("*lease*"))


def test_several_processes_serve_one_log(redis_client, make_settings, spawn):
    """G3, G4: several processes are ready with one line, and apply all once and in order."""
    settings = make_settings(**recorded("Transactional"))
    child = supervisor(spawn, settings, count=3)
    named = json.loads(line_of_json(child))["workers"]
    assert len(named) == 3
    assert {w.id for w in read_status(settings).workers} == set(named)
    wait_until(lambda: shares(settings) == [5, 5, 6], "each has its share of the 16 lanes")
    publish(settings, 0)
    wait_applied(redis_client, settings)
    assert_once_in_order(settings, 20)
    assert child.terminate() == 0, child.output()
    assert leases(redis_client) == []
    assert read_status(settings).workers == []
    assert spawn.descendants() == []


def test_a_killed_process_is_replaced_and_nothing_is_lost(redis_client, make_settings, spawn):
    """G3, G4: kill -9 of each process in turn, while events flow: all once, in order."""
    settings = make_settings(lease=1.0, call_timeout=0.5, **recorded("Transactional"))
    child = supervisor(spawn, settings)
    for turn in range(2):
        publish(settings, turn * 20)
        victim = workers(child)[turn]
        victim.kill()
        wait_until(lambda v=victim: v not in workers(child), "it is gone")
        wait_until(lambda: len(workers(child)) == 2, "another runs")
    publish(settings, 40)
    wait_applied(redis_client, settings)
    assert_once_in_order(settings, 60)
    assert "ended (exit code -9); another starts in 0.5 s" in child.output()


def test_workers_end_with_a_killed_supervisor(redis_client, make_settings, spawn):
    """G5: kill -9 of the supervisor ends its workers in order: lanes are given up at once."""
    settings = make_settings(lease=60.0, **recorded("Transactional"))
    child = supervisor(spawn, settings)
    wait_until(lambda: leases(redis_client), "lanes are owned")
    child.kill()
    wait_until(lambda: leases(redis_client) == [], "the lanes are given up")
    wait_until(lambda: spawn.descendants() == [], "the workers have ended")


def test_recall_processes_do_not_multiply(redis_client, make_settings, spawn):
    """G10: --jobs counts the recall processes of all worker processes together."""
    settings = make_settings(**recorded("Transactional"))
    child = supervisor(spawn, settings, "--jobs", "1")
    (only,) = [w for w in workers(child) if words_of(w)[words_of(w).index("--jobs") + 1] == "1"]
    recalling(settings, only)
    found = [p for w in workers(child) for p in children_of(w.pid) if "jobs" in words_of(p)]
    assert len(found) == 1


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_misconfigured_worker_is_told_once(redis_client, make_settings, spawn, processes):
    """G10: a provider nobody knows ends everything with 2 and one message, whatever the number."""
    settings = make_settings(providers=("builtim",))
    child = spawn(*WORKER, "--processes", processes, env=environ(settings))
    assert child.wait() == 2, child.output()
    assert child.output().count("error: ") == 1
    assert "builtin" in child.output()
    assert "Traceback" not in child.output()


@pytest.mark.parametrize(
    "words", [("--processes", "0"), ("--jobs", "-1"), ("--processes", "two")], ids=" ".join
)
def test_a_count_that_cannot_be_is_refused(make_settings, spawn, words):
    """G10: wrong usage ends with 2 and says which option was wrong."""
    child = spawn(*WORKER, *words, env=environ(make_settings()))
    assert child.wait() == 2
    assert words[0] in child.output()


@pytest.fixture(name="hung")
def _hung(redis_client: redis.Redis, make_settings: MakeSettings) -> Settings:
    """Return settings under which a call is about to hang, longer than any test."""
    slow = {"lease": 120.0, "call_timeout": 100.0}
    settings = make_settings(**slow, **recorded("Keyed"))
    gate(settings).touch()
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed(f"!hang={gate(settings)} here", "ok")
        assert bus.flush("logged", 25)
    return settings


def gate(settings: Settings) -> Path:
    """Return the file without which the hanging call goes on."""
    return settings.data_dir / "gate"


def hanging(spawn: Spawn, settings: Settings, processes: str) -> Child:
    """Start workers and wait until the call hangs."""
    child = spawn(*WORKER, "--processes", processes, env=environ(settings))
    calls = home(settings) / "calls.jsonl"
    wait_until(lambda: calls.exists() and calls.read_text(), "the call hangs")
    return child


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_second_signal_ends_at_once(redis_client, hung, spawn, processes):
    """G5: told twice, a worker ends with 1 although a call hangs; its leases expire."""
    child = hanging(spawn, hung, processes)
    child.send(signal.SIGTERM)
    child.send(signal.SIGINT)
    assert child.wait() == 1, child.output()
    assert "second signal: ending at once" in child.output()
    assert "leases expire by themselves within 120 s" in child.output()
    wait_until(lambda: spawn.descendants() == [], "all processes have ended")


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_hung_call_holds_up_no_end_for_longer_than_grace(
    redis_client, make_settings, hung, spawn, processes
):
    """G10: a worker whose provider hangs ends within its grace, with 1."""
    child = hanging(spawn, make_settings(**_changed(hung, grace=0.3)), processes)
    assert child.terminate() == 1, child.output()
    assert "not ended within 0.3 s: ending at once" in child.output()
    wait_until(lambda: spawn.descendants() == [], "all processes have ended")


def _changed(settings: Settings, **changes: object) -> dict[str, object]:
    fields = {name: getattr(settings, name) for name in settings.__struct_fields__}
    return fields | changes


def test_a_batch_in_hand_is_finished(redis_client, hung, spawn):
    """G4: told once, a worker waits for the call it is in, commits it, and ends with 0."""
    child = hanging(spawn, hung, "2")
    child.send(signal.SIGTERM)
    gate(hung).unlink()
    assert child.wait() == 0, child.output()
    assert len(texts(home(hung))) == 1
    wait_applied(redis_client, hung, timeout=1)
    assert leases(redis_client) == []


def test_the_command_line_hands_on_what_it_was_told(redis_client, make_settings, spawn):
    """Flags win over the environment, and reach every worker; what is printed is documented."""
    settings = make_settings(**recorded("Transactional"))
    flags = {"processes": "2", "jobs": "0", "concurrency": "3", "capacity": "2.5", "grace": "9"}
    words = [word for name, value in flags.items() for word in (f"--{name}", value)]
    words += ["--metrics", "127.0.0.1:0", "--json"]
    child = spawn("-m", "memorybus", "worker", *words, env=environ(settings))
    child.wait_output("}\n")
    assert not list(troubles(("worker",), line_of_json(child)))
    assert len(workers(child)) == 2
    for process in workers(child):
        told = process.environ()
        for name in ("concurrency", "capacity", "grace"):
            assert float(told[f"MEMORYBUS_{name.upper()}"]) == float(flags[name])
    assert child.terminate() == 0, child.output()


def test_up_runs_several_processes(redis_client, make_settings, spawn):
    """`memorybus up --processes` tells of all its workers as is documented, and stops whole."""
    settings = make_settings(**recorded("Transactional"))
    words = ("--processes", "2", "--jobs", "0", "--metrics", "127.0.0.1:0", "--json")
    child = spawn("-m", "memorybus", "up", *words, env=environ(settings))
    child.wait_output("}\n")
    assert not list(troubles(("up",), line_of_json(child)))
    ready = json.loads(line_of_json(child))
    assert {w.id for w in read_status(settings).workers} == set(ready["workers"])
    assert ready["worker"] == ready["workers"][0]
    child.send(signal.SIGINT)
    assert child.wait() == 0, child.output()
    wait_until(lambda: spawn.descendants() == [], "all processes have ended")
