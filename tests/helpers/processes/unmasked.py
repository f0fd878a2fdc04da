"""Processes under a umask that hides nothing, and what is open to others on a disk."""

import argparse
import os
import stat
import sys
from pathlib import Path

from memorybus.agent.client import MemoryBus
from memorybus.config.settings import load
from memorybus_console.cli import main as cli
from memorybus_workers.archiving.archiver import run_once

from helpers.processes.waiting import wait_until
from helpers.stories.scenario import thread_worker


def opened_to_others(*roots: Path) -> list[str]:
    """Return what is not its owner's alone, as ``0644 path``: directories 0700, all else 0600."""
    found = []
    for path in [*roots, *(path for root in roots for path in root.rglob("*"))]:
        try:
            known = path.lstat()
        except FileNotFoundError:  # whatever runs has just renamed or deleted it
            continue
        mode = stat.S_IMODE(known.st_mode)
        wanted = 0o700 if stat.S_ISDIR(known.st_mode) else 0o600
        if mode != wanted and not path.is_symlink():
            found.append(f"{mode:04o} {path}")
    return found


def publish() -> None:
    """Publish as an agent does: a turn, and writes to both stores."""
    with MemoryBus.connect(load()) as bus:
        session = bus.session("s1")
        session.turn_completed("The cat sleeps in the shed.", "I see.")
        session.memory_written("add", "Ann has a cat.", store="user")
        session.memory_written("add", "The shed is green.")
        session.queue_prefetch("cat")
        assert bus.flush(timeout=25)


def run_all() -> None:
    """Publish, apply and archive in this very process."""
    settings = load()
    publish()
    with thread_worker(settings):
        for name, file in (("builtin", "*/*/MEMORY.md"), ("holographic", "*.db")):
            home = settings.provider_home(name)
            wait_until(lambda h=home, f=file: list(h.glob(f)), f"{name} has a memory")
    run_once(settings)


def main() -> int:
    """Take a umask, and run the command line, an agent, or all in one process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("umask", type=int)
    parser.add_argument("what", choices=("cli", "agent", "all"))
    parser.add_argument("words", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    os.umask(given.umask)
    if given.what == "cli":
        return cli(given.words)
    (publish if given.what == "agent" else run_all)()
    return 0


if __name__ == "__main__":
    sys.exit(main())
