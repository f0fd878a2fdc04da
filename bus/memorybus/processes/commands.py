"""Builds the command lines of the processes that commands start, and runs those that report."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import msgspec

from memorybus.config.settings import Settings, to_environ
from memorybus.errors import MemoryBusError
from memorybus.msgspec_types import prepared
from memorybus.processes.child import ChildProcess, running_child
from memorybus.processes.reports import (
    ArchiverRun,
    InstanceDescription,
    KindOffer,
    TrialStep,
    TrialTerms,
)

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
    with running_child(module_command(_WORKERS, "archive"), settings) as child:
        report = child.report()
        if report is None:
            raise _ended_silently("seals events", child)
    return msgspec.convert(report, prepared(ArchiverRun))


def describe_instance(
    settings: Settings, provider: str, name: str = "", options: Mapping[str, Any] | None = None
) -> InstanceDescription:
    words = ["--provider", provider, "--name", name]
    given = msgspec.json.encode(options or {}).decode()
    command = module_command(_WORKERS, "describe", *words, "--options", given)
    with running_child(command, settings) as child:
        report = child.report()
        if report is None:
            raise _ended_silently(f"describes provider {provider}", child)
    return msgspec.convert(report, prepared(InstanceDescription))


def list_kinds(settings: Settings, kinds: Sequence[str] = ()) -> list[KindOffer]:
    command = module_command(_WORKERS, "kinds", "--kinds", ",".join(kinds))
    offers: list[KindOffer] = []
    with running_child(command, settings) as child:
        while (report := child.report()) is not None:
            offers.append(msgspec.convert(report, prepared(KindOffer)))
        if not offers:
            raise _ended_silently("lists the kinds of providers", child)
    return offers


def fetch_for_instance(settings: Settings, provider: str) -> None:
    with running_child(
        module_command(_WORKERS, "fetch", "--provider", provider), settings
    ) as child:
        if child.report() is None:
            raise _ended_silently(f"fetches what provider {provider} needs", child)


def try_instance(
    settings: Settings, provider: str, name: str, options: Mapping[str, Any], terms: TrialTerms
) -> Iterator[TrialStep]:
    words = ["--provider", provider, "--name", name, "--wait", str(terms.wait)]
    words += ["--agent", terms.agent, "--user", terms.user]
    given = msgspec.json.encode(options).decode()
    command = module_command(_WORKERS, "trial", *words, "--options", given)
    with running_child(command, settings) as child:
        reported = False
        while (report := child.report()) is not None:
            reported = True
            yield msgspec.convert(report, prepared(TrialStep))
        if not reported:
            raise _ended_silently(f"tries provider {name}", child)


def _ended_silently(task: str, child: ChildProcess) -> EndedSilently:
    return EndedSilently(
        f"the process that {task} ended without a report (exit code {child.wait()}); if no error "
        f"stands above: memorybus doctor"
    )


def become(command: Sequence[str], settings: Settings) -> NoReturn:
    """Replace this process by a command, which gets its process id and its terminal."""
    sys.stdout.flush()
    os.execve(command[0], list(command), to_environ(settings))  # noqa: S606
