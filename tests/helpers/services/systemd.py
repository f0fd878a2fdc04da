"""systemd-analyze: the machine's own, else Debian's package under ``.servers``, not installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.redis.binaries import FETCHED
from helpers.services.debian import unpacked

HOME = FETCHED / "systemd"
WHY = FETCHED / "systemd.missing"
NAME = "systemd-analyze"


def main() -> None:
    """Fetch it where there is none; never fail: who cannot get it runs the tests without it."""
    FETCHED.mkdir(exist_ok=True)
    try:
        if not _program():
            with unpacked("systemd", "libsystemd-shared") as made:
                shutil.copytree(made, HOME, symlinks=True, dirs_exist_ok=True)
        sys.stdout.write(f"systemd-analyze: {_version()}\n")
        WHY.unlink(missing_ok=True)
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(HOME, ignore_errors=True)
        WHY.write_text(" ".join(str(error).split())[-300:])
        sys.stdout.write(f"systemd-analyze: cannot be had here: {WHY.read_text()}\n")


def analysed(*words: str | Path) -> tuple[int, str]:
    """Run it; return its exit code and all that it said. Skip the test if it is not here."""
    if not _program():
        said = f" (last time: {WHY.read_text()})" if WHY.exists() else ""
        pytest.skip(f"{NAME} is not here; get it: make servers{said}")
    return _ran(*words)


def _version() -> str:
    code, said = _ran("--version")
    if code:
        raise OSError(said)
    return said.splitlines()[0]


def _ran(*words: str | Path) -> tuple[int, str]:
    done = subprocess.run(
        [_program(), *words],
        env=os.environ | _surroundings(),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def _program() -> str:
    return shutil.which(NAME) or shutil.which(NAME, path=HOME / "usr/bin") or ""


def _surroundings() -> dict[str, str]:
    """Return what the unpacked one needs: its library, and the units that others build upon."""
    if not _program().startswith(str(HOME)):
        return {}
    (library,) = HOME.glob("usr/lib/*/systemd")
    return {"LD_LIBRARY_PATH": str(library), "SYSTEMD_UNIT_PATH": f"{HOME / 'lib/systemd/system'}:"}


if __name__ == "__main__":
    main()
