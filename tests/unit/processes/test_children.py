"""Children are told everything and stopped whole."""

import os
import signal
import sys
import threading
import weakref

import psutil
import pytest
from helpers.processes.waiting import wait_until
from hypothesis import given
from hypothesis import strategies as st
from memorybus.config.settings import Settings, load, to_environ
from memorybus.errors import MemoryBusError, WrongPartitionCount
from memorybus.processes import child as children
from memorybus.processes import commands, signals
from memorybus.processes.reports import ArchiverRun


@given(
    st.builds(
        Settings,
        url=st.sampled_from(["", "redis://h:1/0"]),
        namespace=st.sampled_from(["mb", "other"]),
        partitions=st.integers(1, 1024),
        providers=st.lists(st.sampled_from(["builtin", "holographic"]), min_size=1).map(tuple),
        recall_wait=st.floats(0, 9),
        spool_max_bytes=st.integers(1, 1 << 40),
    )
)
def test_a_child_reads_the_very_same_settings(tmp_path_factory, settings):
    """What the parent decided is what the child finds in its environment."""
    base = {"PATH": "/bin", "MEMORYBUS_URL": "redis://wrong", "MEMORYBUS_AGENT": "wrong"}

    told = to_environ(settings, base)

    assert told["PATH"] == "/bin"
    assert load(environ=told, directory=tmp_path_factory.getbasetemp()) == settings


def test_a_child_gets_the_tables_of_the_providers(tmp_path):
    """Provider tables are handed on too, whatever file they stood in."""
    tables = {"notes": {"kind": "my_pkg:Notes", "depth": 3}}
    told = to_environ(Settings(provider=tables), {"MEMORYBUS_CONFIG": "/etc/mb.toml"})

    assert "MEMORYBUS_CONFIG" not in told
    assert load(environ=told, directory=tmp_path).provider == tables


def test_the_worker_command_says_only_what_was_asked():
    """Without options the worker decides by its settings."""
    plain = [sys.executable, "-P", "-m", "memorybus_workers", "worker", "--processes", "1"]

    assert commands.worker_command() == plain
    assert commands.worker_command(with_parent=True) == [*plain, "--with-parent"]
    assert commands.worker_command(("a", "b"), 2) == [*plain, "--providers", "a,b", "--jobs", "2"]
    assert commands.worker_command(processes=3) == [*plain[:-1], "3"]


def script(text: str) -> list[str]:
    """Return the command line of a child that runs `text`."""
    return [sys.executable, "-c", text]


def test_reports_are_json_lines_and_nothing_else(tmp_path):
    """Other output of a child is passed over; its end is None."""
    words = script("print('hello'); print('{\"ready\": true}')")

    with children.running_child(words, Settings(data_dir=tmp_path)) as child:
        assert child.report() == {"ready": True}
        assert child.report() is None


@pytest.mark.parametrize(
    ("kind", "raised"),
    [
        ("WrongPartitionCount", WrongPartitionCount),
        ("NeverHeardOf", MemoryBusError),
        ("LeaseLost", MemoryBusError),
        ("annotations", MemoryBusError),
    ],
)
def test_a_childs_error_is_its_parents(kind, raised, tmp_path):
    """A child's reason is raised as the error it was; an unknown kind as the base of all."""
    line = f'{{"error": "{kind}", "message": "born with 4"}}'

    with (
        children.running_child(script(f"print({line!r})"), Settings(data_dir=tmp_path)) as child,
        pytest.raises(MemoryBusError, match="born with 4") as caught,
    ):
        child.report()

    assert type(caught.value) is raised


def test_a_child_is_stopped_with_its_block(tmp_path):
    """Leaving the block, also by an exception, ends the child by SIGTERM."""
    words = script("import time; print('{}', flush=True); time.sleep(60)")

    def fails() -> None:
        with children.running_child(words, Settings(data_dir=tmp_path)) as child:
            started.append(child)
            child.report()
            raise KeyError

    started: list[children.ChildProcess] = []
    with pytest.raises(KeyError):
        fails()

    (child,) = started
    assert child.exit_code == -signal.SIGTERM


def test_a_deaf_child_is_killed(tmp_path):
    """A child that ignores SIGTERM does not outlive its time."""
    words = script(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print('{}', flush=True); time.sleep(60)"
    )

    with children.running_child(words, Settings(data_dir=tmp_path)) as child:
        child.report()
        code = child.stop(timeout=0.1)

    assert code == -signal.SIGKILL


def test_a_second_signal_is_passed_on(tmp_path):
    """Who is told to stop again while a child takes its time tells the child again."""
    heard = tmp_path / "heard"
    words = script(
        "import pathlib, signal, sys; told = {signal.SIGTERM}; "
        "signal.pthread_sigmask(signal.SIG_BLOCK, told); print('{}', flush=True); "
        f"signal.sigwait(told); pathlib.Path({str(heard)!r}).touch(); "
        "signal.sigwait(told); sys.exit(3)"
    )
    started: list[children.ChildProcess] = []

    def hurry() -> None:
        wait_until(heard.exists, "the first word has come")
        os.kill(os.getpid(), signal.SIGINT)

    def runs() -> None:
        with children.running_child(words, Settings(data_dir=tmp_path)) as child:
            started.append(child)
            child.report()
            threading.Thread(target=hurry, daemon=True).start()

    with pytest.raises(KeyboardInterrupt):
        runs()

    assert started[0].exit_code == 3


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
@pytest.mark.parametrize("times", [1, 2])
def test_a_second_signal_is_told_from_the_first(number, code, times):
    """An end that was asked for once is an orderly one; the second word gives its exit code."""
    previous = {one: signal.getsignal(one) for one in signals.STOPPING}
    signals.unwind_on_stop()

    def ends() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            with signals.deferred():
                for _ in range(times - 1):
                    signal.raise_signal(number)

    try:
        with pytest.raises((KeyboardInterrupt, SystemExit)) as end:
            ends()
    finally:
        for one, handler in previous.items():
            signal.signal(one, handler)

    assert signals.hurried_exit_code(end.value) == (code if times == 2 else 0)


@pytest.mark.parametrize("finalizer", ["__del__", "weakref"])
@pytest.mark.parametrize(
    ("number", "end"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)],
    ids=["SIGINT", "SIGTERM"],
)
@pytest.mark.parametrize("seconds", [0.01, 0.00003], ids=["usual", "at once"])
def test_a_signal_that_a_finalizer_swallows_comes_again(
    monkeypatch, number, end, finalizer, seconds
):
    """Ctrl-C ends a command also if it arrives while Python runs a finalizer, which drops it."""
    monkeypatch.setattr(signals, "_REDELIVERY_SECONDS", seconds)
    previous = {one: signal.getsignal(one) for one in (*signals.STOPPING, signal.SIGALRM)}
    signals.unwind_on_stop()

    class Closing:
        if finalizer == "__del__":

            def __del__(self) -> None:
                signal.raise_signal(number)

    def closes() -> None:
        with signals.lost_stops_repeated():
            closing = Closing()
            if finalizer == "weakref":
                weakref.finalize(closing, signal.raise_signal, number)
            del closing
            for _ in range(1_000):  # a signal just before a wait does not cut that one short
                signal.sigtimedwait([], 0.01)

    try:
        with pytest.raises(end):
            closes()
    finally:
        for one, handler in previous.items():
            signal.signal(one, handler)


def test_an_exit_of_a_finalizer_is_no_lost_stop(monkeypatch):
    """A finalizer that exits with a code of its own is reported, and nobody is stopped for it."""
    monkeypatch.setattr(signals, "_REDELIVERY_SECONDS", 0.001)
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    stopped = []
    monkeypatch.setattr(signals.signal, "setitimer", lambda *what: stopped.append(what))

    class Exiting:
        def __del__(self) -> None:
            raise SystemExit(3)

    with signals.lost_stops_repeated():
        closing = Exiting()
        del closing

    assert [one.exc_value.code for one in reported] == [3]
    assert stopped == []


def test_a_failure_on_the_way_is_no_second_signal():
    """Only another signal counts as one: not an error that was being dealt with when it came."""

    def fails() -> None:
        try:
            os.stat("/nowhere")
        except OSError:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as end:
        fails()

    assert signals.hurried_exit_code(end.value) == 0


def test_nothing_a_killed_child_started_is_left(tmp_path):
    """Grandchildren whose parent was killed are ended with it."""
    words = script(
        "import json, subprocess, sys, time; "
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
        "print(json.dumps({'pid': p.pid}), flush=True); time.sleep(60)"
    )

    with children.running_child(words, Settings(data_dir=tmp_path)) as child:
        orphan = psutil.Process(child.report()["pid"])
        child.kill()
        child.wait()
        assert orphan.is_running()

    wait_until(lambda: _is_gone(orphan), "the grandchild has ended")


def _is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_silence_is_told_from_the_end(tmp_path):
    """A child that runs and says nothing has no reports; its end is heard."""
    gate = tmp_path / "gate"
    gate.touch()
    words = script(f"import os, time\nwhile os.path.exists({str(gate)!r}): time.sleep(0.01)")

    with children.running_child(words, Settings(data_dir=tmp_path)) as child:
        assert child.listen() is None
        assert list(child.reports()) == []
        gate.unlink()
        assert child.report() is None
        assert child.wait() == 0


def test_a_signal_waits_for_the_end_of_a_stop():
    """Ctrl-C during a start or a stop is delivered after it, not lost."""
    done: list[str] = []

    def interrupted() -> None:
        with signals.deferred():
            signal.raise_signal(signal.SIGINT)
            done.append("whole")

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert done == ["whole"]


def test_beside_the_main_thread_nothing_is_held_back():
    """A thread may start a child, too: signals come to the main thread alone."""
    entered = []

    def work() -> None:
        with signals.deferred():
            entered.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert entered == [before]


@pytest.mark.parametrize(
    ("run", "hindered", "idle"),
    [
        (ArchiverRun("/a", 0, False, {}), False, True),
        (ArchiverRun("/a", 3, False, {}), False, False),
        (ArchiverRun("/a", 0, False, {}, ("p01",)), False, False),
        (ArchiverRun("/a", 0, True, {}), True, False),
        (ArchiverRun("/a", 3, False, {"p01": "it differs"}), True, False),
    ],
)
def test_a_run_is_hindered_idle_or_neither(run, *, hindered, idle):
    """Nothing was due only if nothing was in the way, and nobody else was at it."""
    assert (run.hindered, run.idle) == (hindered, idle)


def test_a_silent_end_is_an_error(tmp_path, monkeypatch):
    """A killed archiver has not said that nothing was due: its exit code is told, and what next."""
    killed = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    monkeypatch.setattr(commands, "module_command", lambda *_: killed)
    with pytest.raises(commands.EndedSilently, match=r"\(exit code -9\).* memorybus doctor"):
        commands.run_archiver(Settings(data_dir=tmp_path))
