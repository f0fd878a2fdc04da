"""Who was called, and when: a file that survives the death of its writers.

Only the standard library: peers run it in environments of their own.
"""

import os
import time
from pathlib import Path
from typing import NamedTuple

_FOR_EVER = 3_600.0


class Call(NamedTuple):
    """One call of a handler: when it began (ns, monotonic) and in which process."""

    at: int
    pid: int


class Calls:
    """The calls of one handler, whatever process runs it."""

    def __init__(self, path: Path) -> None:
        """Name the file."""
        self._path = path

    def note(self) -> bool:
        """Write a call down; return whether it was the first."""
        first = not self._path.exists()
        with self._path.open("a") as file:
            file.write(f"{time.monotonic_ns()} {os.getpid()}\n")
        return first

    def hold_first(self) -> None:
        """Write a call down, and do not return from the first."""
        if self.note():
            time.sleep(_FOR_EVER)

    def seen(self) -> list[Call]:
        """Return the calls so far."""
        text = self._path.read_text() if self._path.exists() else ""
        lines = text.split("\n")[:-1]  # what follows the last line break is not yet whole
        return [Call(*map(int, line.split())) for line in lines]
