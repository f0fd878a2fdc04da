"""Makes directories and files that only their user can read, whatever the process's umask is.

Everything that memorybus writes holds memories or leads to them. The umask is not changed, since
an agent's process is not ours. A file that exists already keeps its mode, since somebody chose it.
"""

import os
from contextlib import suppress
from pathlib import Path

DIRECTORY, FILE = 0o700, 0o600
UMASK = 0o077
"""The umask of our own processes: files that libraries create there are private, too."""


def directory(path: Path) -> None:
    """Make a directory and its missing parents, all private; `Path.mkdir` leaves parents open.

    Raises:
        OSError: it cannot be made, or something else has its name.
    """
    try:
        path.mkdir(DIRECTORY)
    except FileNotFoundError:
        directory(path.parent)
        path.mkdir(DIRECTORY, exist_ok=True)
    except OSError:
        if not path.is_dir():
            raise


def opener(path: str, flags: int) -> int:
    """Open a file for `open`; if that makes the file, it is private."""
    return os.open(path, flags, FILE)


def file(path: Path) -> None:
    """Make an empty private file unless it exists.

    SQLite gives the mode of a database to the files that it makes next to it.

    An existing file is not opened, because closing it would drop SQLite's locks on it.

    Raises:
        OSError: it cannot be made.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE))


def write(path: Path, data: bytes) -> None:
    """Write a file's bytes.

    Raises:
        OSError: it cannot be written.
    """
    with open(path, "wb", opener=opener) as out:
        out.write(data)
