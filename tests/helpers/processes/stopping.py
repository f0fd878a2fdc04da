"""``python -m helpers.processes.stopping POINT WORDS…``: a command that stops itself at a point.

It stops by SIGSTOP.

Named as crash points are. SIGCONT lets it go on, and it knows nothing of the time between.
"""

import os
import signal
import sys

from memorybus.testing import CrashPoint
from memorybus_console.cli import main
from memorybus_console.operations.rebuild import rebuild


def stopping_at(point: str) -> CrashPoint:
    """Return a crash point that stops this process where it would be killed."""

    def pass_by(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGSTOP)

    return pass_by


if __name__ == "__main__":
    at = stopping_at(sys.argv.pop(1))
    rebuild.crash_points = lambda spec: at
    sys.exit(main())
