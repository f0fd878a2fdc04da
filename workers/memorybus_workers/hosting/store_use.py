"""Makes sure that only the workers of one log use a local store.

Workers of two logs (another ``url``, another ``namespace``) may be given the same data directory.
Their lanes would overwrite each other's positions and memories in one store. So a worker that
serves a local provider takes a shared lock on a file that is named after its log, and checks that
no such file of another log is locked.
"""

import fcntl
import os
from pathlib import Path

from memorybus import private
from memorybus.errors import Unavailable

_PREFIX = "used-by-"


class StoreUse:
    """Keeps a store in use until `close`.

    Args:
        home: the provider instance's directory.
        log: a name for the log, the same for all of its workers.

    Raises:
        Unavailable: workers of another log use the store now.
        OSError: the directory cannot be written.
    """

    def __init__(self, home: Path, log: str) -> None:
        private.directory(home)
        ours = home / f"{_PREFIX}{log}"
        self._held = os.open(ours, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._held, fcntl.LOCK_SH)
        for other in home.glob(f"{_PREFIX}*"):
            if other != ours and _is_held(other):
                self.close()
                raise Unavailable(
                    f"{home} is in use by workers of another log ({other.name[len(_PREFIX) :]}); "
                    f"stop those workers, or give one of the two logs another data_dir"
                )

    def close(self) -> None:
        """Release the store."""
        os.close(self._held)


def _is_held(path: Path) -> bool:
    """Say whether a process has locked a file; remove the file if none has."""
    try:
        other = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except OSError:
        return True
    finally:
        os.close(other)
    return False
