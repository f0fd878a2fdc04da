"""Programs of Debian's packages, fetched and unpacked under ``.servers``; nothing is installed."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from helpers.services.debian import unpacked
from helpers.services.fetched import FETCHED, fetch, run, skip_without


class DebianPrograms(NamedTuple):
    """What is taken out of some packages.

    Attributes:
        name: the folder under ``.servers``.
        packages: that hold them, and the libraries they need.
        programs: by name, where in the packages they lie; the first one tells its version.
    """

    name: str
    packages: tuple[str, ...]
    programs: Mapping[str, str]

    @property
    def home(self) -> Path:
        """Where they are, with their libraries."""
        return FETCHED / self.name

    @property
    def environment(self) -> Mapping[str, str]:
        """What they are started with."""
        return {**os.environ, "LD_LIBRARY_PATH": str(self.home)}

    def fetch(self) -> None:
        """Fetch them unless they are here."""
        fetch(self.name, self._release)

    def program(self, name: str) -> Path:
        """Return an executable; skip the test if it is not here, with what gets it."""
        if not (self.home / name).exists():
            skip_without(self.name)
        return self.home / name

    def _release(self) -> str:
        first = next(iter(self.programs))
        if not (self.home / first).exists():
            self._unpack()
        said = run(self.home / first, "--version", environment=self.environment)
        return said.strip().splitlines()[0]

    def _unpack(self) -> None:
        self.home.mkdir(exist_ok=True)
        with unpacked(*self.packages) as made:
            for library in (made / "usr/lib").rglob("*.so.*"):
                shutil.copy(library, self.home / library.name)
            for name, place in self.programs.items():
                shutil.copy(made / place, self.home / name)
