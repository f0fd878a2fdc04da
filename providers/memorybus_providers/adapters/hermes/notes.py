"""What Hermes says of each session at its beginning, kept for whoever opens it later.

A child opens a session's plugin instance again for any later event: after it ended, after the
instance was closed, in another worker. Hermes tells a plugin only at the beginning; so it is noted
before the plugin is called. A session whose beginning this instance never got has no note.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
from memorybus import private
from memorybus.ids import derived_id

from memorybus_providers.adapters.owners import Owner

MOST = 4_096
"""Notes at most; above that the least recently used are deleted (G10)."""

_FREED = 256
"""How many notes are deleted at once."""

Facts = Mapping[str, str]
"""What is known of a session, by Hermes's names."""


class SessionNotes:
    """One file for each owner's session, below the instance's home. Notes come from one thread.

    Args:
        home: the instance's.
    """

    def __init__(self, home: Path) -> None:
        """Read nothing yet."""
        self._directory = home / "sessions"

    def facts(self, owner: Owner, session_id: str) -> Facts:
        """Return the note of a session; an empty one if there is none."""
        path = self._path(owner, session_id)
        try:
            found = msgspec.json.decode(path.read_bytes(), type=dict[str, str])
            os.utime(path)  # it is in use
        except (FileNotFoundError, msgspec.DecodeError):  # a crash may have cut it short
            return {}
        return found

    def keep(self, owner: Owner, session_id: str, facts: Facts) -> None:
        """Write the note of a session, unless it is the same."""
        if not facts or self.facts(owner, session_id) == facts:
            return
        private.directory(self._directory)
        path = self._path(owner, session_id)
        writing = path.with_suffix(".new")
        private.write(writing, msgspec.json.encode(facts))
        writing.replace(path)
        self._shrink()

    def carry(self, owner: Owner, before: str, session_id: str) -> None:
        """Give a session the note of the one that it continues, unless it has its own."""
        if not self.facts(owner, session_id):
            self.keep(owner, session_id, self.facts(owner, before))

    def _path(self, owner: Owner, session_id: str) -> Path:
        name = derived_id(owner.agent, owner.user, owner.workspace, session_id)
        return self._directory / f"{name}.json"

    def _shrink(self) -> None:
        notes = list(self._directory.iterdir())
        if len(notes) <= MOST:
            return
        for path in sorted(notes, key=_used)[:_FREED]:
            path.unlink(missing_ok=True)


def _used(path: Path) -> float:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0.0
