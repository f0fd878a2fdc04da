"""A command that is told something: it gets its text, its time, and no more."""

import os
import signal
import sys
from pathlib import Path

import psutil
import pytest
from helpers.processes.waiting import wait_until
from memorybus.processes.command_end import CommandEnd
from memorybus.processes.fed import FedCommand
from memorybus.testing import FakeClock


def fed(code: str, *words: str, text: bytes = b"", timeout: float = 60.0) -> FedCommand:
    """Run Python code as the command."""
    return FedCommand([sys.executable, "-c", code, *words], os.environ, text, timeout)


def test_it_gets_the_text_and_its_words_as_they_are(tmp_path: Path) -> None:
    """G9: no shell reads what it is given."""
    out = tmp_path / "out"
    code = (
        "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read() + sys.argv[2].encode())"
    )
    assert fed(code, str(out), "$(touch x); `id`", text=b"text ").wait() == CommandEnd()
    assert out.read_text() == "text $(touch x); `id`"


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        ("raise SystemExit('no such room')", "no such room (exit code 1)"),
        ("raise SystemExit(7)", "exit code 7"),
        ("import os; os.kill(os.getpid(), 9)", "signal 9"),
        (
            "import sys; sys.stderr.write('x' * 10**6 + '\\nlast'); sys.exit(2)",
            "last (exit code 2)",
        ),
    ],
)
def test_its_failure_is_told_with_its_last_line(code: str, failure: str) -> None:
    """G10: who mends it learns what it said last, however much that was."""
    assert fed(code).wait() == CommandEnd(failure)


def test_one_that_reads_nothing_makes_nobody_wait() -> None:
    """G9: more text than a pipe holds is given to a command that ignores it."""
    assert fed("", text=b"x" * 5_000_000).wait() == CommandEnd()


def test_one_that_hangs_ends_with_all_it_started(tmp_path: Path) -> None:
    """G9: after its time it is killed, and so are its children; until then nobody waits for it."""
    pids = tmp_path / "pids"
    code = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open(sys.argv[1] + '.new', 'w').write(f'{os.getpid()} {child.pid}')\n"
        "os.rename(sys.argv[1] + '.new', sys.argv[1])\n"
        "time.sleep(600)\n"
    )
    clock = FakeClock()
    command = FedCommand([sys.executable, "-c", code, str(pids)], os.environ, b"", 10.0, clock)
    wait_until(pids.exists, "it runs")
    assert command.poll() is None
    clock.advance(10.0)
    assert command.poll() == CommandEnd("it had not ended after 10 s")
    for pid in map(int, pids.read_text().split()):
        wait_until(lambda pid=pid: not _runs(pid), "it is gone")


def test_a_command_that_is_given_up_leaves_nothing_open() -> None:
    """G10: who kills a command needs not ask for its end: its process and its file are gone."""
    command = FedCommand([sys.executable, "-c", "import time; time.sleep(600)"], {}, b"", 600.0)
    command.kill()
    assert command._process.returncode == -signal.SIGKILL
    assert command._stderr.closed
    assert command.poll() == CommandEnd("it was ended")


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_what_is_no_program_is_told() -> None:
    """G10: a misspelt program is an error of its own."""
    with pytest.raises(OSError, match="no-such-program"):
        FedCommand(["no-such-program"], os.environ, b"", 1.0)
