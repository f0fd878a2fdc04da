"""The use of a local store by the workers of one log: those of another log are kept out.

A data directory may be named to workers of two logs (another ``url``, another ``namespace``). Their
lanes would write their positions and memories over each other's into one store. So who serves a
local provider holds a shared lock on a file that is named for its log, and makes sure that nobody
holds one for another.
"""

import fcntl
import os
from pathlib import Path

from memorybus import private
from memorybus.errors import Unavailable

_PREFIX = "used-by-"


class StoreUse:
    """A store in use, until `close`.

    Args:
        home: the provider instance's directory.
        log: a name for the log, the same for all workers of it.

    Raises:
        Unavailable: workers of another log use the store now.
        OSError: the directory cannot be written.
    """

    def __init__(self, home: Path, log: str) -> None:
        """Take it."""
        private.directory(home)
        ours = home / f"{_PREFIX}{log}"
        self._held = os.open(ours, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._held, fcntl.LOCK_SH)
        for other in home.glob(f"{_PREFIX}*"):
            if other != ours and _is_held(other):
                self.close()
                raise Unavailable(
                    f"{home} is in use by workers of another log ({other.name[len(_PREFIX) :]}); "
                    f"stop them, or give one of the two another data_dir"
                )

    def close(self) -> None:
        """Leave it."""
        os.close(self._held)


def _is_held(path: Path) -> bool:
    """Say whether anybody holds a lock on a file; one that nobody holds is removed."""
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
