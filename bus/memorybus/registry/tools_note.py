"""Keeps a note of the offered tools in a file on this host.

An agent asks for its tools before it has any connection, and must never wait for one (G9). So each
host keeps what the workers declared in a small file. Before it is written for the first time, no
tools are offered.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

import msgspec

from memorybus import private
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.ids import NewId
from memorybus.msgspec_types import prepared
from memorybus.redis.keys import Keys
from memorybus.registry.tools import DeclaredTools

_log = logging.getLogger("memorybus")
LOOK_EVERY = 60.0  # seconds between two readings of what workers declare


def read_note(path: Path) -> dict[str, DeclaredTools]:
    """Return what this host has noted; nothing if there is no note or it is unreadable (logged)."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=prepared(dict[str, DeclaredTools]))
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _log.warning("%s: no tools are offered: %s", path, error)
        return {}


def write_note(path: Path, declared: Mapping[str, DeclaredTools], name: str) -> bool:
    """Write the note in one step: no reader sees half of it. False if it is the same already."""
    body = msgspec.json.encode(dict(declared))
    if path.exists() and path.read_bytes() == body:
        return False
    private.directory(path.parent)
    new = path.with_name(f"{path.name}.{name}")
    private.write(new, body)
    new.replace(path)
    return True


def fetch_declared_tools(settings: Settings) -> dict[str, DeclaredTools]:
    from memorybus.redis.connect import connected
    from memorybus.registry.roster import Roster

    with connected(settings) as redis:
        return Roster(redis, Keys(settings.namespace)).tools()


class ToolsNote:
    """Asks now and then what workers declare, and notes it. Belongs to one background thread."""

    def __init__(self, settings: Settings, clock: Clock, new_id: NewId) -> None:
        self._settings = settings
        self._clock = clock
        self._new_id = new_id
        self._look_at = 0.0

    def refresh(self) -> None:
        """Note what is declared now, if it is time to ask again.

        If nothing is declared the note stays: no worker has ever run, or Redis has lost its memory
        and the workers are about to register again.
        """
        now = self._clock.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY
        declared = fetch_declared_tools(self._settings)
        if declared:
            self._note(declared)

    def _note(self, declared: dict[str, DeclaredTools]) -> None:
        try:
            write_note(self._settings.tools_path, declared, self._new_id())
        except OSError as error:
            _log.warning("agents of this host may miss new memory tools: %s", error)
