"""Child processes of the command line, workers above all, told everything by the environment."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NoReturn, TextIO, cast

import msgspec

from memorybus.config.settings import Settings, to_environ
from memorybus.errors import MemoryBusError, error_named
from memorybus.processes import signals
from memorybus.processes.interpreter import module_command
from memorybus.registry.description import Described

RESERVE = 3.0
"""Seconds after its own `grace` in which a child that was told to end is killed."""

LogForm = Literal["text", "json"]

_WORKERS = "memorybus_workers"


def worker_command(
    providers: Sequence[str] = (),
    jobs: int | None = None,
    *,
    processes: int = 1,
    log: LogForm = "text",
    with_parent: bool = False,
    json: bool = False,
) -> list[str]:
    """Return the command line of worker processes and of who watches over them.

    Args:
        providers: whom it serves; those of the settings if none.
        jobs: its recall processes; its own default if None.
        processes: how many share the lanes.
        log: the form of its log on stderr.
        with_parent: it ends with its starter, and tells it as a report why it fails.
        json: it tells programs, too, why it fails.
    """
    command = module_command(_WORKERS, "worker", "--processes", str(processes))
    if with_parent:
        command.append("--with-parent")
    if json:
        command.append("--json")
    if providers:
        command += ["--providers", ",".join(providers)]
    if log != "text":
        command += ["--log", log]
    return command + (["--jobs", str(jobs)] if jobs is not None else [])


def copy_command(name: str, mark: str) -> list[str]:
    """Return the command line of a worker that serves one copy and nothing else.

    Args:
        name: the copy.
        mark: how its id ends, by which its lanes are freed when it dies.
    """
    return module_command(_WORKERS, "copy", "--name", name, "--mark", mark)


def described(
    settings: Settings, provider: str, name: str = "", options: Mapping[str, Any] | None = None
) -> Described:
    """Ask a child what an instance, or a copy of it called `name`, would be; nothing is opened.

    Raises:
        MissingProvider, ConfigError: it cannot be made here.
        MemoryBusError: the child said nothing.
    """
    words = ["--provider", provider, "--name", name]
    given = msgspec.json.encode(options or {}).decode()
    command = module_command(_WORKERS, "describe", *words, "--options", given)
    with running(command, settings) as child:
        report = child.report()
        if report is None:
            raise MemoryBusError(
                f"what {provider} is could not be found out (exit code {child.process.wait()})"
            )
    return msgspec.convert(report, Described)


def archive_command() -> list[str]:
    """Return the command line that seals now what may be sealed, and reports it as a JSON line."""
    return module_command(_WORKERS, "archive")


@contextmanager
def running(
    command: Sequence[str], settings: Settings, *, directory: Path | None = None
) -> "Iterator[Child]":
    """Run a child for as long as the block lasts; it is stopped on the way out, whatever happened.

    The child leads a session of its own, so that a Ctrl-C reaches only us and we stop it in order;
    a second one is passed on, and stops it at once.

    Args:
        command: what to run.
        settings: what it is told.
        directory: where it runs, hence which ``memorybus.toml`` it finds; ours if None.
    """
    child: Child | None = None
    try:
        with signals.deferred():
            child = _started(command, settings, directory)
        yield child
    finally:
        if child is not None:
            with signals.deferred(child.tell):
                child.stop()


def _started(command: Sequence[str], settings: Settings, directory: Path | None) -> "Child":
    process = subprocess.Popen(  # noqa: S603  our own interpreter and module
        command,
        env=to_environ(settings),
        cwd=directory,
        stdin=subprocess.PIPE,  # its end tells the child that we are gone
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    return Child(process, settings.grace + RESERVE)


def become(command: Sequence[str], settings: Settings) -> NoReturn:
    """Let a child take this process's place: same process id, same terminal."""
    sys.stdout.flush()
    os.execve(command[0], list(command), to_environ(settings))  # noqa: S606


class Child:
    """A running child whose standard output is JSON lines.

    Attributes:
        process: it.
        patience: seconds it gets between SIGTERM and SIGKILL.
    """

    def __init__(self, process: subprocess.Popen[str], patience: float) -> None:
        """Watch over `process`, which was started with a pipe and leads a session."""
        self.process = process
        self.patience = patience
        self._stdout = cast("TextIO", process.stdout)

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended, or None while it runs."""
        return self.process.poll()

    def speaks(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for a line; true also at the end of its output."""
        return bool(select.select([self._stdout], [], [], timeout)[0])

    def report(self) -> dict[str, Any] | None:
        """Wait for the next JSON line and return it; None when there will be no more.

        Raises:
            MemoryBusError: the child tells with this line why it ends; the kind is its own.
        """
        for line in self._stdout:
            if line.startswith("{"):
                return _checked(dict(msgspec.json.decode(line)))
        return None

    def tell(self) -> None:
        """Send SIGTERM, unless it has ended."""
        self.process.send_signal(signal.SIGTERM)

    def stop(self, timeout: float | None = None) -> int:
        """End the child: SIGTERM, wait, SIGKILL. Return its exit code; safe to call twice.

        What it started itself and left behind, because it was killed, goes with it.

        Args:
            timeout: seconds to wait; the child's own if None.
        """
        self.tell()
        try:
            code = self.process.wait(self.patience if timeout is None else timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._stdout.close()
        if self.process.stdin is not None:
            self.process.stdin.close()
        return code


def _checked(report: dict[str, Any]) -> dict[str, Any]:
    if "error" not in report:
        return report
    raise error_named(str(report["error"]), str(report.get("message", "")))
