"""Debian's packages, unpacked for the tests and not installed."""

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_TIMEOUT = 600


@contextmanager
def unpacked(*packages: str) -> Iterator[Path]:
    """Fetch packages and unpack them into a directory that is gone afterwards.

    Raises:
        OSError: they cannot be had.
    """
    with tempfile.TemporaryDirectory() as made:
        run("apt-get", "download", *packages, cwd=made)
        for package in Path(made).glob("*.deb"):
            run("dpkg-deb", "-x", package, made)
        yield Path(made)


def run(
    *command: str | Path, cwd: str | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Run a command, with an environment if one is given; return what it printed.

    Raises:
        OSError: it fails; with what it said.
    """
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=_TIMEOUT,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise OSError(f"{command[0]} {command[1]}: {(done.stderr or done.stdout).strip()}")
    return done.stdout
