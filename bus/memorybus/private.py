"""Directories and files that only their user reads, whatever the process's umask is.

All that memorybus writes holds memories, or leads to them. The umask itself is left alone: an
agent's process is not ours. What is there already keeps its mode: somebody chose it.
"""

import os
from contextlib import suppress
from pathlib import Path

DIRECTORY, FILE = 0o700, 0o600

UMASK = 0o077
"""For processes that are ours: what libraries in them make is private, too."""


def directory(path: Path) -> None:
    """Make a directory and those above it that are missing: `Path.mkdir` opens the latter to all.

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
    """Open a file for `open`; one that is made by that is private."""
    return os.open(path, flags, FILE)


def file(path: Path) -> None:
    """Make an empty file, unless there is one: SQLite gives its mode to those beside it.

    One that is there is not opened: closing it again would take away SQLite's locks on it.

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
