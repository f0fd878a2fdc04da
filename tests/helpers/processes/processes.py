"""Child processes that never outlive their test."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import psutil

from helpers.processes.preloaded import STARTED_BY, Order, Preloaded, Template, can_fork
from helpers.processes.waiting import wait_until

MARK = "MB_TEST_MARK"
"""In the environment of every child and of what it starts, so that orphans are found.

A Redis server overwrites its environment; it is known by its working directory.
"""


class Child:
    """One child process and what it says.

    Attributes:
        log_path: its standard output and error, in the order written.
    """

    def __init__(
        self,
        argv: list[str],
        log_path: Path,
        process: "subprocess.Popen[bytes] | Preloaded",
    ) -> None:
        self.argv = argv
        self.log_path = log_path
        self._process = process
        self.pid = process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs (a frozen one does)."""
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Its exit code, ``-signal`` if one killed it, None while it runs."""
        return self._process.poll()

    def output(self) -> str:
        """Return what it has written so far."""
        return self.log_path.read_text(errors="replace")

    def wait(self, timeout: float = 45.0) -> int:
        """Return its exit code; fail with its output if it does not end in time."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"still running after {timeout:g} s: {self.argv}\n{self.output()}"
            ) from None

    def wait_output(self, text: str, timeout: float = 45.0) -> None:
        """Wait until it has written `text`."""

        def said() -> bool:
            alive = self.alive  # before reading: what it said just before its end is not missed
            found = text in self.output()
            assert found or alive, f"ended ({self.exit_code}) unsaid {text!r}: {self.output()}"
            return found

        wait_until(said, f"{self.argv} says {text!r}", timeout)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.send(signal.SIGKILL)
        self._process.wait(30)

    def terminate(self, timeout: float = 45.0) -> int:
        """SIGTERM; return the exit code."""
        self.send(signal.SIGTERM)
        return self.wait(timeout)

    def freeze(self) -> None:
        """SIGSTOP: it does nothing and knows nothing of it. Returns once all its threads stand."""
        self.send(signal.SIGSTOP)
        wait_until(self._stands, f"{self.argv} stands still")

    def thaw(self) -> None:
        """SIGCONT."""
        self.send(signal.SIGCONT)

    def _stands(self) -> bool:
        threads = Path(f"/proc/{self.pid}/task").glob("*/stat")
        return all(_state(thread) in "TZ" for thread in threads)


def _state(stat: Path) -> str:
    try:
        return stat.read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


class Spawn:
    """Starts children for one test. ``spawn("-m", "memorybus_workers")`` runs this Python.

    Args:
        directory: where the children's logs go.
        mark: tells this test's processes from all others.
        data_dir: a process that works at or below it is this test's, too.

    Attributes:
        mark: the environment by which what others start is known as this test's.
        preload: whether modules come from a process that has loaded them (``--preload``).
    """

    preload: ClassVar[bool] = False
    _template: ClassVar[Template | None] = None

    def __init__(self, directory: Path, mark: str, data_dir: Path) -> None:
        self._directory = directory
        self.mark = {MARK: mark}
        self._data_dir = data_dir.resolve()
        self.children: list[Child] = []

    def __call__(
        self,
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        python: str | Path = sys.executable,
    ) -> Child:
        """Run a Python with `arguments` and, over this process's, the environment `env`."""
        log_path = self._directory / f"child{len(self.children)}.log"
        argv = [str(python), *map(str, arguments)]
        environ = self._environment(env or {})
        with log_path.open("wb") as log:
            begun = self._begin_preloaded(argv, environ, log.fileno(), cwd)
            process = begun or subprocess.Popen(
                argv,
                env=environ,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        child = Child(argv, log_path, process)
        self.children.append(child)
        return child

    @classmethod
    def _begin_preloaded(
        cls, argv: list[str], environ: Mapping[str, str], log: int, cwd: Path | None
    ) -> Preloaded | None:
        """Fork the program from the template, None if it has to be started afresh."""
        if not cls.preload or not can_fork(argv, environ):
            return None
        return cls._its_template().start(argv[1:], environ, log, cwd)

    @classmethod
    def run_preloaded(cls, order: Order, files: Sequence[int]) -> Preloaded:
        """Fork a program that something in this process starts."""
        return cls._its_template().run(order, files)

    @classmethod
    def _its_template(cls) -> Template:
        if cls._template is None:
            cls._template = Template(_around())
        return cls._template

    @classmethod
    def close_template(cls) -> None:
        """End the process that has the modules loaded."""
        if cls._template is not None:
            cls._template.close()
            cls._template = None

    def end_all(self) -> None:
        """Kill every child and everything they started, orphans included."""
        for child in self.children:
            if child.alive:
                child.kill()
            child.wait()
        wait_until(self._all_killed, "killed processes are gone", 30)

    def descendants(self) -> list[psutil.Process]:
        """Return what of this test's processes still runs, zombies apart."""
        return [p for p in self._ours() if _runs(p)]

    def _all_killed(self) -> bool:
        """Kill what runs; say whether nothing did. What dies may have started one more just now."""
        found = self.descendants()
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        return not found

    def _environment(self, env: Mapping[str, str]) -> dict[str, str]:
        return {**_around(), **env, **self.mark}

    def _ours(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.pid != os.getpid() and self._is_ours(process):
                    yield process

    def _is_ours(self, process: psutil.Process) -> bool:
        if process.environ().items() >= self.mark.items():
            return True
        # A process that is just forked still shows the template's environment. The number of one
        # that ended may be another's.
        if any(child.pid == process.pid and child.alive for child in self.children):
            return True
        return Path(process.cwd()).is_relative_to(self._data_dir)


def children_of(pid: int) -> list[psutil.Process]:
    """Return the processes that a process has started, those that have ended apart."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if pid in (process.ppid(), int(process.environ().get(STARTED_BY, 0))):
                found.append(process)
    return [process for process in found if _runs(process)]


def _around() -> dict[str, str]:
    """Return this process's environment for Pythons that write at once.

    Modules are compiled once, not by each of hundreds of processes, whatever is said around us.
    """
    return {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": ""}


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
