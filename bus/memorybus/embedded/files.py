"""The embedded server's command line and files: checks before a start, and why it ended."""

import os
import sys
from pathlib import Path

from memorybus.embedded.binary import ServerBinary, format_version
from memorybus.errors import ConfigError, ServerFailed

SOCKET_PATH_MAX = 103 if sys.platform == "darwin" else 107
"""Bytes of a socket's path (``sun_path`` without its NUL); Redis would truncate a longer one."""

LOG_MAX = 1 << 20
"""Bytes of the server's log above which a start sets it aside (G10)."""

DISK_FULL = 1 << 20
"""A disk with fewer free bytes counts as full."""

TAIL_LINES = 8

AOF_NAME = "appendonly.aof"
AOF_DIRECTORY = "appendonlydir"
"""Redis 7 keeps the append-only file as a directory of parts; Redis 6.2 would not see it."""

MULTI_PART_AOF = (7, 0, 0)


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
    """Refuse a socket path that the system cannot bind.

    Raises:
        ConfigError: the path is longer than `longest` bytes; the message names the remedy.
    """
    length = len(os.fsencode(socket))
    if length > longest:
        raise ConfigError(
            f"data_dir is too long for a unix socket: {socket} has {length} bytes, and {longest} "
            "are the limit. Choose a shorter data_dir (MEMORYBUS_DATA_DIR), or set MEMORYBUS_URL"
        )


def check_data_format(directory: Path, binary: ServerBinary) -> None:
    """Refuse to start an old server on a newer server's files: it would not see them.

    Raises:
        ServerFailed: `directory` was written by Redis 7 or later and `binary` is older.
    """
    newer = directory / AOF_DIRECTORY
    if binary.version < MULTI_PART_AOF and newer.is_dir() and any(newer.iterdir()):
        older = format_version(binary.version)
        raise ServerFailed(
            f"{newer} was written by Redis 7 or later; {binary.path} is {older} "
            "and would begin empty beside it. Put a newer redis-server on PATH, or choose "
            "another data_dir"
        )


def explain_end(log_lines: list[str], directory: Path, free_bytes: int) -> str:
    """Return why a server ended: the end of its log and, if one is known, the remedy.

    Args:
        log_lines: the end of its log since this start; empty if it could not write any.
        directory: where its data lies.
        free_bytes: what is left on that disk.
    """
    said = "Its log says:\n" + "\n".join(log_lines) if log_lines else "It left no log."
    if free_bytes < DISK_FULL:
        return f"{said}\nThe disk of {directory} is full: make room and start again."
    if any("redis-check-aof" in line or "append only file" in line for line in log_lines):
        return f"{said}\n{_aof_remedy(directory)}"
    return said


def _aof_remedy(directory: Path) -> str:
    parts = directory / AOF_DIRECTORY
    damaged = parts / f"{AOF_NAME}.manifest" if parts.is_dir() else directory / AOF_NAME
    return (
        f"The append-only file is damaged. Copy {directory} away, then cut the damaged end off: "
        f"redis-check-aof --fix '{damaged}' (a redis-server binary does this when it is called by "
        "that name: bash -c 'exec -a redis-check-aof redis-server --fix FILE')"
    )
