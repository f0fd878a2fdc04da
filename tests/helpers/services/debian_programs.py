"""Programs of Debian's packages, fetched and unpacked under ``.servers``; nothing is installed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from helpers.redis.binaries import FETCHED
from helpers.services.debian import run, unpacked


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

    @property
    def _why(self) -> Path:
        return FETCHED / f"{self.name}.missing"

    def fetch(self) -> None:
        """Fetch them; never fail: who cannot get them runs the tests without."""
        FETCHED.mkdir(exist_ok=True)
        first = next(iter(self.programs))
        try:
            if not (self.home / first).exists():
                self._unpack()
            said = run(self.home / first, "--version", environment=self.environment)
            self._why.unlink(missing_ok=True)
            sys.stdout.write(f"{self.name}: {said.strip().splitlines()[0]}\n")
        except (OSError, subprocess.SubprocessError) as error:
            shutil.rmtree(self.home, ignore_errors=True)
            self._why.write_text(" ".join(str(error).split())[-300:])
            sys.stdout.write(f"{self.name}: cannot be had here: {self._why.read_text()}\n")

    def program(self, name: str) -> Path:
        """Return an executable; skip the test if it is not here, with what gets it."""
        if not (self.home / name).exists():
            said = f" (last time: {self._why.read_text()})" if self._why.exists() else ""
            pytest.skip(f"{name} is not here; get it: make servers{said}")
        return self.home / name

    def _unpack(self) -> None:
        self.home.mkdir(exist_ok=True)
        with unpacked(*self.packages) as made:
            for library in (made / "usr/lib").rglob("*.so.*"):
                shutil.copy(library, self.home / library.name)
            for name, place in self.programs.items():
                shutil.copy(made / place, self.home / name)
