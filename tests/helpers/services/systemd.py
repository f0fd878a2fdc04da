"""systemd-analyze: the machine's own, else Debian's package under ``.servers``, not installed."""

import os
import shutil
import subprocess
from pathlib import Path

from helpers.services.debian import unpacked
from helpers.services.fetched import FETCHED, fetch, run, skip_without

HOME = FETCHED / "systemd"
NAME = "systemd-analyze"


def _release() -> str:
    if not _program():
        with unpacked("systemd", "libsystemd-shared") as made:
            shutil.copytree(made, HOME, symlinks=True, dirs_exist_ok=True)
    return run(_program(), "--version", environment=_environment()).splitlines()[0]


def analysed(*words: str | Path) -> tuple[int, str]:
    """Run it; return its exit code and all that it said. Skip the test if it is not here."""
    if not _program():
        skip_without("systemd")
    done = subprocess.run(
        [_program(), *words], env=_environment(), capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def _program() -> str:
    return shutil.which(NAME) or shutil.which(NAME, path=HOME / "usr/bin") or ""


def _environment() -> dict[str, str]:
    """Return what the unpacked one needs: its library, and the units that others build upon."""
    if not _program().startswith(str(HOME)):
        return dict(os.environ)
    (library,) = HOME.glob("usr/lib/*/systemd")
    units = f"{HOME / 'lib/systemd/system'}:"
    return {**os.environ, "LD_LIBRARY_PATH": str(library), "SYSTEMD_UNIT_PATH": units}


if __name__ == "__main__":
    fetch("systemd", _release)
