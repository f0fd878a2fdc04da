"""Sinks that stop their whole process (SIGSTOP) once: ``helpers.processes.stopped:Blind``.

A file in the sink's directory, named for the place, asks for it; who stops takes it away.
"""

import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from memorybus.log.entry import LoggedEvent
from memorybus_workers.lanes.lane import Lane

from helpers.faults import sink

IN_CALL = "in its call"
READ = "with events read"


def _stop_if_asked(directory: Path, place: str) -> None:
    with suppress(FileNotFoundError):
        (directory / place).unlink()
        # To this very thread: of a signal to the process it may see nothing until it holds a lock.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


class Stopping(sink.Blind):
    """What the sinks here have in common."""

    def open(self) -> None:
        """Prepare; and let lanes of this process stop when they have read something."""
        super().open()
        directory, read = self._directory, Lane.read

        def read_and_stop(lane: Lane, most: int) -> Sequence[LoggedEvent]:
            found = read(lane, most)
            if found:
                _stop_if_asked(directory, READ)
            return found

        Lane.read = read_and_stop

    def _crash(self, name: str, event_id: str) -> None:
        """Stop in the call, if that is asked for, and keep the turn then."""
        if name == "sink.in_call":
            _stop_if_asked(self._directory, IN_CALL)
        super()._crash(name, event_id)


class Blind(Stopping):
    """As the sink of this class."""


class Keyed(Stopping, sink.Keyed):
    """As the sink of this class."""


class Lookup(Stopping, sink.Lookup):
    """As the sink of this class."""
