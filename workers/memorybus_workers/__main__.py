"""``python -m memorybus_workers``: the processes behind `memorybus worker` and `memorybus replay`.

Settings come from the environment and ``memorybus.toml``. Exit codes: 0 ended as told, 1 failed.
"""

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence

from memorybus import logs
from memorybus.errors import MemoryBusError
from memorybus.settings import Settings, load

_log = logging.getLogger("memorybus")


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and run one process; return its exit code."""
    options = _parser().parse_args(arguments)
    logs.set_up("text" if sys.stderr.isatty() else "json")
    try:
        return _run(options, load())
    except MemoryBusError as error:
        _log.error("%s", error)
        return 1


def _run(options: argparse.Namespace, settings: Settings) -> int:
    if options.command == "worker":
        from memorybus_workers.main import run_worker

        if options.with_parent:
            threading.Thread(target=_end_with_parent, daemon=True).start()
        return run_worker(settings, _names(options.providers, settings), options.jobs)
    if options.command == "jobs":
        from memorybus_workers.jobs.worker import run_jobs

        threading.Thread(target=_end_with_parent, daemon=True).start()
        run_jobs(settings, _names(options.providers, settings))
        return 0
    from memorybus_workers.replay import run_replay

    return run_replay(settings, options.provider, options.into)


def _names(given: str, settings: Settings) -> tuple[str, ...]:
    names = tuple(name.strip() for name in given.split(",") if name.strip())
    return names or settings.providers


def _end_with_parent() -> None:
    """Do not outlive the process that started us: our end of its pipe closes when it dies."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memorybus_workers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    worker = commands.add_parser("worker", help="apply events and answer recalls")
    worker.add_argument("--providers", default="", help="names, separated by commas")
    worker.add_argument("--jobs", type=int, default=1, help="recall processes")
    worker.add_argument("--with-parent", action="store_true", help="end when standard input closes")
    jobs = commands.add_parser("jobs", help="answer recalls (a worker starts this)")
    jobs.add_argument("--providers", default="")
    replay = commands.add_parser("replay", help="apply the log to a fresh instance")
    replay.add_argument("--provider", required=True)
    replay.add_argument("--into", required=True)
    replay.add_argument("--json-lines", action="store_true", help="progress as JSON lines")
    return parser


if __name__ == "__main__":
    sys.exit(main())
