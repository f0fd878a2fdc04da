"""The supervisor of several worker processes, with stand-ins for the workers."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from helpers.processes.waiting import wait_until
from hypothesis import given
from hypothesis import strategies as st
from memorybus.config.settings import Settings
from memorybus.errors import (
    NEEDS_A_PERSON,
    ConfigError,
    LogUnavailable,
    MissingProvider,
)
from memorybus.processes.child import start_child
from memorybus_workers.processes import supervisor as supervisors
from memorybus_workers.processes.process import MISCONFIGURED, print_json_line
from memorybus_workers.processes.supervised_worker import fatal_error
from memorybus_workers.processes.supervisor import (
    Supervisor,
    plan_workers,
    separate_providers,
    spread_jobs,
)

READY = """
import json, os, signal, sys, threading
ends = {signal.SIGTERM, signal.SIGINT}
signal.pthread_sigmask(signal.SIG_BLOCK, ends)
def told(): signal.sigwait(ends)
print("a provider prints this"); print("{and this")
print(json.dumps({"ready": True, "worker": f"w{os.getpid()}"}), flush=True)
"""
OBEDIENT = READY + "told()"
DEAF = READY + "threading.Event().wait()"
TWICE = READY + "told(); told(); sys.exit(1)"


MARK = "# a stand-in for a worker\n"


def command(program: str) -> list[str]:
    """Return the command line of a stand-in."""
    return [sys.executable, "-c", MARK + program]


def failing(kind: str, code: int) -> str:
    """Return a stand-in that says why it ends."""
    return f'import sys; print(\'{{"error": "{kind}", "message": "so"}}\'); sys.exit({code})'


def supervised(tmp_path: Path, *programs: str, grace: float = 20.0) -> Supervisor:
    """Return a supervisor of stand-ins."""
    settings = Settings(data_dir=tmp_path, grace=grace)
    count = len(programs)
    names = [f"worker process {number} of {count}" for number in range(1, count + 1)]
    there = {name: command(program) for name, program in zip(names, programs, strict=True)}
    return Supervisor(settings, ("a", "b"), lambda _: there, "abcdef")


class Run:
    """A supervisor at work on a thread."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor
        self.code: int | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.code = self.supervisor.run()

    def end(self) -> int | None:
        """Wait for its end; return the exit code."""
        self._thread.join(40)
        assert not self._thread.is_alive(), "the supervisor does not end"
        return self.code


@contextmanager
def running(supervisor: Supervisor) -> Iterator[Run]:
    """Run a supervisor until the block is left."""
    run = Run(supervisor)
    try:
        yield run
    finally:
        supervisor.stop()
        supervisor.end_at_once()
        run.end()


def stand_ins() -> list[psutil.Process]:
    """Return the stand-ins that run; what other tests left is a child of this process, too."""
    return [p for p in psutil.Process().children() if MARK in " ".join(_words(p))]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


@given(st.integers(0, 100), st.integers(1, 40))
def test_recall_processes_are_shared_out(jobs, processes):
    """G10: there are as many recall processes as were asked for, spread evenly."""
    found = spread_jobs(jobs, processes)
    assert len(found) == processes
    assert sum(found) == jobs
    assert max(found) - min(found) <= 1
    assert found == sorted(found, reverse=True)


def test_one_line_says_that_all_are_ready(tmp_path, capfd, monkeypatch):
    """Readiness is told once, when every worker is ready; told to end, all do, with 0."""
    told: list[dict[str, Any]] = []

    def say_and_note(line: dict[str, Any]) -> None:
        print_json_line(line)
        told.append(line)

    monkeypatch.setattr(supervisors, "print_json_line", say_and_note)
    supervisor = supervised(tmp_path, OBEDIENT, OBEDIENT, OBEDIENT)
    with running(supervisor) as run:
        wait_until(lambda: told, "it is ready")
        processes = stand_ins()
        assert len(processes) == 3
        ids = [f"w{one.pid}" for one in processes]
        supervisor.stop()
        assert run.end() == 0
    # Read once, at the end: what is said while it is being read is lost.
    (line,) = [msgspec.json.decode(one) for one in capfd.readouterr().out.splitlines()]
    assert line == {"ready": True, "worker": line["worker"], "workers": line["workers"]}
    assert sorted(line["workers"]) == sorted(ids)
    assert not [one for one in processes if one.is_running()]


def test_a_line_without_end_is_bounded(tmp_path):
    """G10: a provider that prints megabytes without a newline costs the supervisor a line's."""
    many = 4 << 20
    noise = f"import sys; sys.stdout.write('x' * {many}); print(flush=True)"
    words = command(noise + READY + "told()")
    process = start_child(words, Settings(data_dir=tmp_path))
    try:

        def ready() -> list[dict[str, Any]]:
            process.listen()
            assert len(process._text) <= 1 << 16
            return list(process.reports())

        (report,) = wait_until(ready, "the worker is ready")
        assert report["worker"] == f"w{process.pid}"
    finally:
        process.stop(5)


def test_what_is_said_at_the_end_holds_nobody_up(tmp_path):
    """G10: a provider that prints more than a pipe holds while it ends does not end by force."""
    noise = "told(); import sys; sys.stdout.write('x' * 200_000); sys.stdout.flush()"
    process = start_child(command(READY + noise), Settings(data_dir=tmp_path))
    assert process.report()["ready"]
    assert process.stop(30) == 0


def test_a_killed_worker_is_replaced(tmp_path, caplog):
    """G9: kill -9 of one worker starts another; the others are left alone."""
    supervisor = supervised(tmp_path, OBEDIENT, OBEDIENT)
    with running(supervisor):
        first, second = wait_until(_two, "two run")
        first.kill()
        wait_until(lambda: first not in stand_ins() and _two(), "two run again")
        assert second in stand_ins()
    assert "of 2 ended (exit code -9); another starts in 0.5 s" in caplog.text


def _two() -> list[psutil.Process] | None:
    found = stand_ins()
    return found if len(found) == 2 else None


def test_one_that_dies_again_and_again_waits_ever_longer(tmp_path, caplog):
    """G10: a worker that cannot live is started ever more seldom, while the others work."""
    with running(supervised(tmp_path, OBEDIENT, failing("LogUnavailable", 1))):
        wait_until(lambda: "another starts in 1 s" in caplog.text, "the second pause is longer")
    assert "worker process 2 of 2 ended (exit code 1): so; another starts in 0.5 s" in caplog.text


@pytest.mark.parametrize(("kind", "code"), [("MissingProvider", 2), ("ConfigError", 2)])
def test_a_misconfigured_worker_ends_all(tmp_path, kind, code):
    """What one worker cannot run with, none can: all end, and its reason is the supervisor's."""
    supervisor = supervised(tmp_path, OBEDIENT, failing(kind, code))
    with pytest.raises((MissingProvider, ConfigError), match="so") as caught:
        supervisor.run()
    assert type(caught.value).__name__ == kind
    assert stand_ins() == []


def test_a_worker_that_does_not_end_is_ended(tmp_path):
    """G10: a worker past its grace is ended by force, and the exit code says so."""
    supervisor = supervised(tmp_path, OBEDIENT, DEAF, grace=0.1)
    with running(supervisor) as run:
        await_ready(supervisor)
        supervisor.stop()
        assert run.end() == 1
        assert stand_ins() == []


def test_a_second_word_is_passed_on(tmp_path):
    """Told twice, every worker is told twice; one that does not hear it is killed."""
    supervisor = supervised(tmp_path, OBEDIENT, TWICE, DEAF)
    with running(supervisor) as run:
        await_ready(supervisor)
        supervisor.stop()
        wait_until(lambda: len(stand_ins()) == 2, "one has ended in order")
        supervisor.end_at_once()
        assert run.end() == 1
        assert stand_ins() == []


def await_ready(supervisor: Supervisor) -> None:
    """Wait until every worker is ready."""
    wait_until(lambda: all(one.worker for one in supervisor._workers.values()), "all are ready")


NAMES = ("a", "b", "c", "d")
_SOME = st.frozensets(st.sampled_from((*NAMES, "unknown")))


@given(st.lists(_SOME), st.integers(1, 5), st.integers(0, 4))
def test_every_provider_has_its_place(shown, count, jobs):
    """G9: whoever is separated, each provider is served: with others, or in its own place."""
    separated: frozenset[str] = frozenset()
    for found in shown:
        before, separated = separated, separate_providers(NAMES, separated, found)
        assert before <= separated < set(NAMES)
        assert separated - before <= found
    there = plan_workers(NAMES, separated, count, jobs)
    shared = tuple(name for name in NAMES if name not in separated)
    assert [post.serves for post in there[:count]] == [shared] * count
    assert [post.serves for post in there[count:]] == [
        (name,) for name in NAMES if name in separated
    ]
    assert sum(post.jobs for post in there[:count]) == jobs
    assert len({post.name for post in there}) == len(there)


GIVES_UP = READY + "print(json.dumps({'apart': 'a'}), flush=True); told()"


def test_who_is_replaced_works_until_the_next_is_ready(tmp_path):
    """G9: a process that gave a provider up ends when the one that takes over is ready."""
    gate = tmp_path / "gate"
    gate.touch()
    wait = f"import os, time\nwhile os.path.exists({str(gate)!r}): time.sleep(0.01)\n"

    def commands(separated: frozenset[str]) -> dict[str, list[str]]:
        if not separated:
            return {"one": command(GIVES_UP)}
        return {"one": command(wait + OBEDIENT), "a": command(OBEDIENT)}

    supervisor = Supervisor(Settings(data_dir=tmp_path), ("a", "b"), commands, "abcdef")
    with running(supervisor):
        wait_until(lambda: len(stand_ins()) == 3, "both of the new ones are started")
        (old,) = supervisor._workers["one"].leaving
        wait_until(lambda: supervisor._workers["a"].worker, "the one of its own is ready")
        assert psutil.pid_exists(old.pid)
        gate.unlink()
        wait_until(lambda: not supervisor._workers["one"].leaving, "the old one has ended")
        assert len(stand_ins()) == 2


@pytest.mark.parametrize("kind", NEEDS_A_PERSON)
def test_what_would_end_every_worker_ends_all(kind):
    """A failure that a person has to mend is not tried again and again."""
    error = kind("so")
    assert fatal_error(1, error) is error


@pytest.mark.parametrize(
    ("code", "error"), [(0, None), (1, None), (-9, None), (1, LogUnavailable("so"))]
)
def test_what_may_pass_is_tried_again(code, error):
    """G9: a worker that was killed, or failed of what may pass, gets a successor."""
    assert fatal_error(code, error) is None


def test_wrong_usage_ends_all():
    """A worker that ends with 2 without a word would do so again."""
    assert isinstance(fatal_error(MISCONFIGURED, None), ConfigError)
