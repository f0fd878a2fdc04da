"""The embedded server's command line and files: checks before a start, and why it ended."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from memorybus.embedded.binary import ServerBinary
from memorybus.errors import ConfigError, ServerFailed

SOCKET_PATH_MAX = 103 if sys.platform == "darwin" else 107
"""Bytes of a socket's path (``sun_path`` without its NUL); Redis would truncate a longer one."""

LOG_MAX = 1 << 20  # bytes of the server's log above which a start sets it aside (G10)
DISK_FULL = 1 << 20  # a disk with fewer free bytes counts as full
TAIL_LINES = 8
AOF_NAME = "appendonly.aof"
AOF_DIRECTORY = "appendonlydir"
"""Redis 7 keeps the append-only file as a directory of parts; Redis 6.2 would not see it."""

_MAGIC_BYTES = 9
Version = tuple[int, int, int]
_NEVER: Version = (sys.maxsize, 0, 0)
_FORMATS: tuple[tuple[bytes, str, Mapping[str, Version]], ...] = (
    (b"VALKEY", "Valkey 9 or later", {"Valkey": (9, 0, 0)}),
    (b"REDIS0012", "Redis 7.4 or later", {"Redis": (7, 4, 0)}),
    (b"REDIS0011", "Redis 7.2 or later", {"Redis": (7, 2, 0), "Valkey": (7, 2, 0)}),
    (b"", "Redis 7 or later", {"Redis": (7, 0, 0), "Valkey": (7, 2, 0)}),
)
"""How base files begin, the newest format first: who writes it, and the oldest that read it."""


def server_arguments(binary: Path, socket: Path, log: Path) -> list[str]:
    """Return the server's command line: durable, never evicting, private to this user."""
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "600",
        "dir": str(socket.parent),
        "logfile": str(log),
        "daemonize": "no",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "appendfilename": AOF_NAME,
        "save": "",
        "maxmemory-policy": "noeviction",
        "stream-node-max-bytes": "65536",
        "hz": "4",  # how often an idle server wakes up in a second; the default is 10
    }
    return [str(binary), *(part for name in options for part in (f"--{name}", options[name]))]


def check_socket_path(socket: Path, longest: int = SOCKET_PATH_MAX) -> None:
    """Refuse a socket path that the system cannot bind."""
    length = len(os.fsencode(socket))
    if length > longest:
        raise ConfigError(
            f"data_dir is too long for a unix socket: {socket} has {length} bytes, and {longest} "
            "are the limit. Choose a shorter data_dir (MEMORYBUS_DATA_DIR), or set MEMORYBUS_URL"
        )


def check_data_format(directory: Path, binary: ServerBinary) -> None:
    """Refuse a server that does not read the files of another one (`ServerFailed`).

    Redis 6.2 would begin empty beside them, and others end with advice that cuts the files off.
    """
    parts = directory / AOF_DIRECTORY
    if not parts.is_dir() or not any(parts.iterdir()):
        return  # Redis 6.2 wrote the files, if there are any, and every server reads those
    newest = max((base.read_bytes()[:_MAGIC_BYTES] for base in parts.glob("*.rdb")), default=b"")
    _, writer, readers = next(written for written in _FORMATS if newest >= written[0])
    if binary.version < readers.get(binary.product, _NEVER):
        raise ServerFailed(
            f"{parts} was written by {writer}; {binary.path} is {binary.name} and does not read "
            f"it. Put a newer redis-server or that valkey-server on PATH, or choose another "
            f"data_dir"
        )


def explain_end(log_lines: list[str], directory: Path, free_bytes: int) -> str:
    """Return why a server ended: the end of its log and, if one is known, the remedy."""
    ending = "Its log:\n" + "\n".join(log_lines) if log_lines else "It left no log."
    if free_bytes < DISK_FULL:
        return f"{ending}\nThe disk of {directory} is full: make room and start again."
    if any("redis-check-aof" in line or "append only file" in line for line in log_lines):
        return f"{ending}\n{_aof_remedy(directory)}"
    return ending


def _aof_remedy(directory: Path) -> str:
    parts = directory / AOF_DIRECTORY
    damaged = parts / f"{AOF_NAME}.manifest" if parts.is_dir() else directory / AOF_NAME
    return (
        f"The append-only file is damaged. Copy {directory} away, then cut the damaged end off: "
        f"redis-check-aof --fix '{damaged}' (a redis-server binary does this when it is called by "
        "that name: bash -c 'exec -a redis-check-aof redis-server --fix FILE')"
    )
