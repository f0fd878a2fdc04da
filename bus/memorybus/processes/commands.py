"""Builds the command lines of the processes that commands start, and runs those that report."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import msgspec

from memorybus.config.settings import Settings, to_environ
from memorybus.errors import MemoryBusError
from memorybus.msgspec_types import prepared
from memorybus.processes.child import running_child
from memorybus.processes.reports import (
    ArchiverRun,
    InstanceDescription,
    KindOffer,
    TrialStep,
    TrialTerms,
)

_T = TypeVar("_T")
_WORKERS = "memorybus_workers"


class EndedSilently(MemoryBusError):
    """A child ended without a report."""


def module_command(module: str, *words: str) -> list[str]:
    """Return the command line that runs `module` as a program.

    With ``-m`` alone Python would search the working directory first for every module: a file
    ``redis.py`` in the directory where a person runs a command would replace the library.
    """
    return [sys.executable, "-P", "-m", module, *words]


def worker_command(
    providers: Sequence[str] = (),
    jobs: int | None = None,
    *,
    processes: int = 1,
    with_parent: bool = False,
    json: bool = False,
    metrics: str = "",
) -> list[str]:
    command = module_command(_WORKERS, "worker", "--processes", str(processes))
    if with_parent:
        command.append("--with-parent")
    if json:
        command.append("--json")
    if providers:
        command += ["--providers", ",".join(providers)]
    if metrics:
        command += ["--metrics", metrics]
    return command + (["--jobs", str(jobs)] if jobs is not None else [])


def copy_command(name: str, mark: str) -> list[str]:
    return module_command(_WORKERS, "copy", "--name", name, "--mark", mark)


def run_archiver(settings: Settings) -> ArchiverRun:
    return next(_reports(settings, ArchiverRun, "archive"))


def describe_instance(
    settings: Settings, provider: str, name: str = "", options: Mapping[str, Any] | None = None
) -> InstanceDescription:
    words = ("--provider", provider, "--name", name, "--options", _as_json(options or {}))
    return next(_reports(settings, InstanceDescription, "describe", *words))


def list_kinds(settings: Settings, kinds: Sequence[str] = ()) -> list[KindOffer]:
    return list(_reports(settings, KindOffer, "kinds", "--kinds", ",".join(kinds)))


def fetch_for_instance(settings: Settings, provider: str) -> None:
    next(_reports(settings, dict[str, str], "fetch", "--provider", provider))


def try_instance(
    settings: Settings, provider: str, name: str, options: Mapping[str, Any], terms: TrialTerms
) -> Iterator[TrialStep]:
    words = ["--provider", provider, "--name", name, "--options", _as_json(options)]
    words += ["--wait", str(terms.wait), "--agent", terms.agent, "--user", terms.user]
    return _reports(settings, TrialStep, "trial", *words)


def _as_json(options: Mapping[str, Any]) -> str:
    return msgspec.json.encode(options).decode()


def _reports(settings: Settings, kind: type[_T], task: str, *words: str) -> Iterator[_T]:
    """Yield what the process of a task reports; its error is raised, and its silence is one."""
    with running_child(module_command(_WORKERS, task, *words), settings) as child:
        reported = False
        while (report := child.report()) is not None:
            reported = True
            yield msgspec.convert(report, prepared(kind))
        if not reported:
            raise EndedSilently(
                f"`memorybus_workers {task}` ended without a report (exit code {child.wait()}); "
                f"if no error stands above: memorybus doctor"
            )


def become(command: Sequence[str], settings: Settings) -> NoReturn:
    """Replace this process by a command, which gets its process id and its terminal."""
    sys.stdout.flush()
    os.execve(command[0], list(command), to_environ(settings))  # noqa: S606
