"""``python -m memorybus_workers``: the processes behind `memorybus worker` and `memorybus replay`.

Settings come from the environment and ``memorybus.toml``. The exit code is 0 after an orderly end,
1 after a failure and 2 if the configuration is wrong. The reason goes to stderr. A command that
reads our standard output (``--with-parent``, ``describe``) gets it there instead, as the JSON line
``{"error": <kind>, "message": <text>}``, with ``next`` if Redis is away. With ``--json`` a worker
writes both.
"""

import signal

if __name__ == "__main__":
    # A Ctrl-C while modules are loaded ends the process without a word: nothing has begun yet.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import msgspec
from memorybus import private
from memorybus.config.settings import LogForm, Settings, load, load_secrets
from memorybus.errors import NEEDS_A_PERSON, LogUnavailable, MemoryBusError
from memorybus.processes.light_imports import collect_seldom, end_without_collecting, load_redis
from memorybus.text.redact import masked

from memorybus_workers import logs
from memorybus_workers.processes.exporting import export_spans
from memorybus_workers.processes.process import (
    FAILED,
    MISCONFIGURED,
    call_when_parent_ends,
    share_one_heap,
)

_log = logging.getLogger("memorybus")
SWITCH_SECONDS = 0.0002
"""Seconds after which a thread that computes lets another thread go on.

Applying an event takes the interpreter's lock some ten times. With Python's 5 ms for each, an event
would be 50 ms late beside a provider that replays. Half a millisecond made a drain 3 per cent
faster, and the slowest events beside a rebuild a quarter later.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and run one process; return its exit code."""
    options = _parser().parse_args(arguments)
    os.umask(private.UMASK)  # providers of others make files, too
    logs.set_up()
    collect_seldom()
    end_without_collecting()
    share_one_heap()
    sys.setswitchinterval(SWITCH_SECONDS)
    form: LogForm = "text"
    try:
        settings = load()
        form = settings.log
        logs.set_up(form, settings.log_level)
        settings = load_secrets(settings)
        logs.set_up(form, settings.log_level, settings.secrets)
        return _run(options, settings)
    except MemoryBusError as error:
        _explain(options, error, form)
        return MISCONFIGURED if isinstance(error, NEEDS_A_PERSON) else FAILED


def _explain(options: argparse.Namespace, error: MemoryBusError, form: LogForm) -> None:
    """Say why this process ends: to the command that reads our output, or to people."""
    text = masked(str(error))
    if options.reports or options.json:
        report = {"error": type(error).__name__, "message": text}
        if isinstance(error, LogUnavailable) and error.remedy:
            report |= {"message": masked(error.problem), "next": error.remedy}
        line = msgspec.json.encode(report)
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.flush()
    if options.reports:
        return
    if form == "json":
        _log.error("%s", text)
    else:
        sys.stderr.write(f"error: {_printable(text)}\n")


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _run(options: argparse.Namespace, settings: Settings) -> int:
    if options.command == "worker":
        return _run_worker(options, settings)
    if options.command == "jobs":
        load_redis()
        from memorybus_workers.jobs.worker import run_jobs

        call_when_parent_ends(lambda: os.kill(os.getpid(), signal.SIGTERM))
        with export_spans():
            run_jobs(settings, options.provider)
        return 0
    if options.command == "curator":
        load_redis()
        from memorybus_workers.jobs.curator import run_waiting

        call_when_parent_ends(lambda: os.kill(os.getpid(), signal.SIGTERM))
        run_waiting(settings, due=options.due)
        return 0
    if options.command == "copy":
        from memorybus_workers.processes.process import run_worker

        return run_worker(settings, (), 0, with_parent=True, mark=options.mark, only=options.name)
    if options.command == "archive":
        load_redis()
        from memorybus_workers.archiving.archiver import run_once
        from memorybus_workers.processes.process import print_json_line

        print_json_line(msgspec.to_builtins(run_once(settings)))
        return 0
    return _DESCRIBERS[options.command](options, settings)


def _offer(options: argparse.Namespace, settings: Settings) -> int:
    from memorybus_workers.processes.process import print_json_line
    from memorybus_workers.provider_commands.offers import list_offers

    for offer in list_offers(_split_names(options.kinds)):
        print_json_line(msgspec.to_builtins(offer))
    return 0


def _try(options: argparse.Namespace, settings: Settings) -> int:
    from memorybus.clock import SYSTEM
    from memorybus.events import Scope
    from memorybus.ids import new_id

    from memorybus_workers.hosting.instances import make_instance
    from memorybus_workers.processes.process import print_json_line
    from memorybus_workers.provider_commands.trial import HANG_SECONDS, Trial, run_trial

    name, changed = options.name or options.provider, _options(options)
    kind = "" if name == options.provider else options.provider
    instance = partial(make_instance, settings, name, SYSTEM, kind=kind, options=changed)
    scope = Scope(options.agent, options.user)
    trial = Trial(instance, settings, SYSTEM, new_id, options.wait, scope)
    for step in run_trial(trial, options.provider, HANG_SECONDS + options.wait):
        print_json_line(msgspec.to_builtins(step))
    return 0


def _options(options: argparse.Namespace) -> dict[str, Any]:
    return msgspec.json.decode(options.options, type=dict[str, Any])


def _describe(options: argparse.Namespace, settings: Settings) -> int:
    from memorybus_workers.processes.process import print_json_line
    from memorybus_workers.provider_commands.offers import describe

    name = options.name or options.provider
    found = describe(settings, options.provider, name, _options(options))
    print_json_line(msgspec.to_builtins(found))
    return 0


def _fetch(options: argparse.Namespace, settings: Settings) -> int:
    from memorybus.clock import SYSTEM

    from memorybus_workers.hosting.instances import make_instance
    from memorybus_workers.processes.process import print_json_line

    make_instance(settings, options.provider, SYSTEM).fetch()
    print_json_line({"fetched": options.provider})
    return 0


_DESCRIBERS: Final[Mapping[str, Callable[[argparse.Namespace, Settings], int]]] = MappingProxyType(
    {"describe": _describe, "fetch": _fetch, "kinds": _offer, "trial": _try}
)
"""What tells a command something about providers, as JSON lines."""


def _run_worker(options: argparse.Namespace, settings: Settings) -> int:
    names, jobs = _names_or_default(options.providers, settings), options.jobs
    if options.processes is None:
        from memorybus_workers.processes.process import run_worker

        return run_worker(
            settings,
            names,
            jobs,
            with_parent=options.reports,
            mark=options.mark,
            among=_split_names(options.among),
        )
    from memorybus_workers.processes.supervisor import run_supervisor

    return run_supervisor(
        settings,
        names,
        options.processes,
        jobs,
        with_parent=options.reports,
        mark=options.mark,
        metrics=options.metrics,
    )


def _names_or_default(given: str, settings: Settings) -> tuple[str, ...]:
    return _split_names(given) or settings.providers


def _split_names(given: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in given.split(",") if name.strip())


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if (value := int(text)) < least:
            raise argparse.ArgumentTypeError(f"it must be at least {least}, not {value}")
        return value

    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memorybus_workers", description=__doc__)
    parser.set_defaults(reports=False, json=False)
    commands = parser.add_subparsers(dest="command", required=True)
    _add_worker(commands.add_parser("worker", help="apply events and answer recalls"))
    archive = commands.add_parser("archive", help="seal now what may be sealed")
    jobs = commands.add_parser("jobs", help="answer recalls (a worker starts this)")
    jobs.add_argument("--provider", required=True)
    curator = commands.add_parser("curator", help="let memories age (a worker starts this)")
    curator.add_argument("--due", action="store_true", help="also if no run waits")
    copy = commands.add_parser("copy", help="serve one copy of an instance and nothing else")
    copy.add_argument("--name", required=True)
    copy.add_argument("--mark", default="")
    describe = commands.add_parser("describe", help="describe an instance, as JSON")
    trial = commands.add_parser("trial", help="try an instance: open, write, recall, as JSON lines")
    trial.add_argument("--wait", type=float, default=10.0, help="seconds until it must recall")
    trial.add_argument("--agent", required=True, help="whose memories: the agent")
    trial.add_argument("--user", required=True, help="the person")
    fetch = commands.add_parser("fetch", help="fetch what an instance needs, as a JSON line")
    fetch.add_argument("--provider", required=True)
    kinds = commands.add_parser("kinds", help="list the kinds of providers, as JSON lines")
    kinds.add_argument("--kinds", default="", help="only these, separated by commas")
    for command in (describe, trial):
        command.add_argument("--provider", required=True)
        command.add_argument("--name", default="", help="of a copy")
        command.add_argument("--options", default="{}", help="of a copy, as JSON")
    for command in (archive, copy, describe, fetch, kinds, trial):
        command.set_defaults(reports=True)
    return parser


def _add_worker(worker: argparse.ArgumentParser) -> None:
    worker.add_argument("--providers", default="", help="names, separated by commas")
    worker.add_argument("--among", default="", help="these and those of other processes, in order")
    worker.add_argument(
        "--processes",
        type=_at_least(1),
        help="start so many workers and watch over them; without it this process is the worker",
    )
    worker.add_argument("--metrics", default="", help="HOST:PORT, with --processes")
    worker.add_argument("--jobs", type=_at_least(0), default=1, help="recall processes")
    worker.add_argument(
        "--with-parent",
        dest="reports",
        action="store_true",
        help="end when standard input closes; print a failure as JSON",
    )
    worker.add_argument("--json", action="store_true", help="print a failure as JSON, too")
    worker.add_argument(
        "--mark", default="", help="how its id ends, for the process that starts it"
    )


if __name__ == "__main__":
    sys.exit(main())
