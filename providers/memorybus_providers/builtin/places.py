"""Says where a scope's files are. Ids are hostile data; the directory names made of them are safe.

::

    <home>/state.db                    lanes, ledger, pending writes (see `store`)
    <home>/memory/<agent>/MEMORY.md    the agent's notes: one per agent profile, whoever speaks
    <home>/user/<user>/USER.md         what is known of a person: one per person, for all agents

Each directory is named by `folder_names`.
"""

from pathlib import Path

import msgspec
from memorybus.events import Scope, StoreName

from memorybus_providers.folder_names import folder_of

FILES: dict[StoreName, str] = {"memory": "MEMORY.md", "user": "USER.md"}


class MemoryFile(msgspec.Struct, frozen=True):
    """One file of one owner, relative to the instance's home."""

    store: StoreName
    folder: str

    def file(self, home: Path) -> Path:
        """Return the Markdown file."""
        return home / self.store / self.folder / FILES[self.store]

    def left_over(self, home: Path) -> Path | None:
        """Return the folder if it exists without the file: somebody put other files into it."""
        file = self.file(home)
        return file.parent if file.parent.is_dir() and not file.exists() else None


def file_of(store: StoreName, scope: Scope) -> MemoryFile:
    """Return the file for a write: ``user`` belongs to the person, ``memory`` to the agent."""
    return MemoryFile(store, folder_of(scope.user if store == "user" else scope.agent))


def readable_files(home: Path, agent: str | None, user: str | None) -> tuple[MemoryFile, ...]:
    """Return the files that a recall may read; None means every owner that has a file."""
    owners: tuple[tuple[StoreName, str | None], ...] = (("memory", agent), ("user", user))
    return tuple(
        MemoryFile(store, folder)
        for store, owner in owners
        for folder in (_all_folders(home / store) if owner is None else (folder_of(owner),))
    )


def _all_folders(parent: Path) -> tuple[str, ...]:
    if not parent.is_dir():
        return ()
    return tuple(sorted(entry.name for entry in parent.iterdir() if entry.is_dir()))
