"""Keeps what Hermes tells a plugin when a session begins, to open the session again later.

A later event may need a new plugin instance for the session: after the child ended, after the
instance was closed, or in another worker. Hermes tells a plugin these facts only at the beginning,
so they are stored before the plugin is called. A session has no note if this instance of the
provider never got its beginning.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
from memorybus import private
from memorybus.ids import derived_id

from memorybus_providers.owners import Owner

MAX_NOTES = 4_096
"""The most notes; if there are more, the least recently used ones are deleted (G10)."""

_NOTES_PER_DELETION = 256
"""How many notes are deleted at a time."""

Facts = Mapping[str, str]
"""What is known of a session, with Hermes's names."""


class SessionNotes:
    """The notes: one file for each session of an owner, below the home. One thread writes them.

    Args:
        home: the instance's home.
    """

    def __init__(self, home: Path) -> None:
        self._directory = home / "sessions"

    def facts(self, owner: Owner, session_id: str) -> Facts:
        """Return the note of a session; it is empty if there is none."""
        path = self._path(owner, session_id)
        try:
            found = msgspec.json.decode(path.read_bytes(), type=dict[str, str])
            os.utime(path)  # marks it as in use
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
        if len(notes) <= MAX_NOTES:
            return
        for path in sorted(notes, key=_used)[:_NOTES_PER_DELETION]:
            path.unlink(missing_ok=True)


def _used(path: Path) -> float:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0.0
