"""``memorybus up`` as a service of the person's own systemd."""

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import platformdirs
from memorybus import private
from memorybus.errors import MemoryBusError

UNIT = "memorybus.service"
STOP = f"systemctl --user disable --now {UNIT}"
_MARK = "# Written by memorybus; its next set-up writes it again.\n"
_PROGRAM = "%h/.local/bin/memorybus up"
_DIRECTORY = "WorkingDirectory=%E/memorybus"
_TIMEOUT = 30.0

_Run = Callable[..., "subprocess.CompletedProcess[str]"]


class ServiceFailed(MemoryBusError):
    """systemd did not take the service; the message contains its reason."""


def unit_text(program: Sequence[str], directory: Path, variables: Mapping[str, str]) -> str:
    """Return the unit: the shipped one with another program and place (pure).

    Args:
        program: the command line that runs `memorybus`.
        directory: where it finds ``memorybus.toml``.
    """
    command = " ".join(_quoted(word).replace("$", "$$") for word in (*program, "up"))
    given = [f"Environment={_quoted(f'{name}={text}')}" for name, text in variables.items()]
    place = "\n".join([f"WorkingDirectory={str(directory).replace('%', '%%')}", *given])
    shipped = (files("memorybus_console.operations") / UNIT).read_text(encoding="utf-8")
    return _MARK + shipped.replace(_PROGRAM, command).replace(_DIRECTORY, place)


def _quoted(word: str) -> str:
    """Return a word as systemd reads it back unchanged."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def unit_path() -> Path:
    return platformdirs.user_config_path() / "systemd" / "user" / UNIT


def is_ours() -> bool:
    """Return whether there is a unit that `start` wrote."""
    path = unit_path()
    return path.is_file() and path.read_text(errors="replace").startswith(_MARK)


def is_possible(run: _Run = subprocess.run) -> bool:
    """Whether this person has a systemd, and no unit of that name that somebody else wrote."""
    if shutil.which("systemctl") is None or (unit_path().exists() and not is_ours()):
        return False
    return _systemctl(run, "show-environment").returncode == 0


def start(text: str, run: _Run = subprocess.run) -> Path:
    """Write the unit, start it, and let it start with each login; return its file.

    Raises:
        ServiceFailed: systemd refuses.
        OSError: the unit cannot be written.
    """
    path = unit_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    private.write(path, text.encode())  # a variable may hold a password
    for words in (("daemon-reload",), ("enable", UNIT), ("restart", "--no-block", UNIT)):
        done = _systemctl(run, *words)
        if done.returncode:
            reason = done.stderr.strip()[-300:]
            raise ServiceFailed(f"systemctl --user {' '.join(words)}: {reason}")
    return path


def _systemctl(run: _Run, *words: str) -> "subprocess.CompletedProcess[str]":
    command = ["systemctl", "--user", *words]
    return run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
