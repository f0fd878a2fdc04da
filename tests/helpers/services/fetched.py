"""What tests need beyond the dev extra: fetched once under ``.servers``, or named as lacking."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

import pytest

FETCHED = (Path(__file__).parents[3] / ".servers").resolve()
_MAX_REASON_CHARS = 300
"""Characters of a reason that are kept."""


def fetch(name: str, get: Callable[[], str]) -> None:
    """Get something; print which release it is, or why it cannot be had.

    It never fails: who cannot get it runs the tests without it.
    """
    FETCHED.mkdir(exist_ok=True)
    try:
        said = get()
        _why(name).unlink(missing_ok=True)
    except (OSError, ValueError, subprocess.SubprocessError, zipfile.BadZipFile) as error:
        shutil.rmtree(FETCHED / name, ignore_errors=True)
        _why(name).write_text(" ".join(str(error).split())[-_MAX_REASON_CHARS:])
        said = f"cannot be had here: {_why(name).read_text()}"
    sys.stdout.write(f"{name}: {said}\n")


def skip_without(name: str, command: str = "make servers") -> NoReturn:
    """Skip the test that wants what is not here, with the command that gets it."""
    said = f" (last time: {_why(name).read_text()})" if _why(name).exists() else ""
    pytest.skip(f"{name} is not here; get it: {command}{said}")


def run(
    *command: str | Path,
    cwd: str | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = 600,
) -> str:
    """Run a command, with an environment if one is given; return what it printed.

    Raises:
        OSError: it fails; with what it said.
    """
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=timeout,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise OSError(f"{command[0]} {command[1]}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def installed(home: Path, *packages: str) -> None:
    """Make a Python environment with some packages."""
    run(sys.executable, "-m", "venv", home)
    pip = ("-m", "pip", "--disable-pip-version-check", "install", "-q")
    run(home / "bin" / "python", *pip, *packages, timeout=1_800)


def download(package: str, directory: str, *options: str) -> Path:
    """Download a distribution's wheel, of which no code is run."""
    pip = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:")
    run(*pip, *options, "-d", directory, package)
    return max(Path(directory).glob("*.whl"), key=lambda path: path.stat().st_mtime)


def _why(name: str) -> Path:
    return FETCHED / f"{name}.missing"
