"""Real memory services, each in a Python environment of its own under ``.servers``.

``make backends`` fetches them. One that cannot be had here is named with the reason, and the tests
that want it are skipped with that.
"""

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from helpers.redis.binaries import FETCHED

_TIMEOUT = 1_800

PACKAGES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "hindsight-1.1.0": ("hindsight-api-slim==1.1.0",),
        "mem0-2.2.1": ("mem0ai==2.2.1", "psycopg-pool>=3.2.8"),
        "phoenix-20.26.1": ("arize-phoenix==20.26.1",),
    }
)
"""By the environment's name, what is in it: Hindsight's server, Mem0's library, and Phoenix, which
keeps and shows traces that it gets by OTLP."""


def main() -> None:
    """Fetch what is missing; never fail: who cannot get it runs the tests without it."""
    FETCHED.mkdir(exist_ok=True)
    for name, packages in PACKAGES.items():
        try:
            _fetch(name, packages)
            sys.stdout.write(f"{name}: {' '.join(packages)}\n")
        except (OSError, subprocess.SubprocessError) as error:
            shutil.rmtree(FETCHED / name, ignore_errors=True)
            _why(name).write_text(" ".join(str(error).split())[-300:])
            sys.stdout.write(f"{name}: cannot be had here: {_why(name).read_text()}\n")


def is_here(name: str) -> bool:
    """Say whether a service was fetched."""
    return (FETCHED / name / "done").exists()


def environment(name: str) -> Path:
    """Return where a service's environment is; skip the test if it is not here."""
    home = FETCHED / name
    if not is_here(name):
        said = f" (last time: {_why(name).read_text()})" if _why(name).exists() else ""
        pytest.skip(f"{name} is not here; get it: make backends{said}")
    return home


def packages_of(name: str) -> Path:
    """Return where an environment's packages are; skip the test if it is not here."""
    (found,) = environment(name).glob("lib/python*/site-packages")
    return found


def _fetch(name: str, packages: Sequence[str]) -> None:
    home = FETCHED / name
    if not is_here(name):
        _run(sys.executable, "-m", "venv", str(home))
        pip = ("-m", "pip", "--disable-pip-version-check", "install", "-q", *packages)
        _run(str(home / "bin" / "python"), *pip)
        (home / "done").touch()
    _why(name).unlink(missing_ok=True)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command[:4])}: {done.stderr.strip()}")


def _why(name: str) -> Path:
    return FETCHED / f"{name}.missing"


if __name__ == "__main__":
    main()
