"""Where a scope's files lie. Ids are hostile data; the directory they name never is.

::

    <home>/state.db                    lanes, ledger, pending writes (see `store`)
    <home>/memory/<agent>/MEMORY.md    the agent's notes: one per agent profile, whoever speaks
    <home>/user/<user>/USER.md         what is known of a person: one per person, whatever agent

An id that is a plain lower-case name is its own directory. Any other gets its readable part and a
digest of the whole id after a ``~``, which no plain name contains: so two ids never share a
directory, also where the file system does not tell upper from lower case.
"""

import re
from pathlib import Path

import msgspec
from memorybus.events import Scope, StoreName
from memorybus.ids import derived_id

FILES: dict[StoreName, str] = {"memory": "MEMORY.md", "user": "USER.md"}

_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9_-])?")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")
_UNSAFE = re.compile(r"[^a-z0-9]+")
_READABLE = 40


class MemoryFile(msgspec.Struct, frozen=True):
    """One file of one owner, relative to the instance's home."""

    store: StoreName
    folder: str

    def file(self, home: Path) -> Path:
        """Return the Markdown file."""
        return home / self.store / self.folder / FILES[self.store]

    def left_over(self, home: Path) -> Path | None:
        """Return the folder if it is there without the file: somebody put other files into it."""
        file = self.file(home)
        return file.parent if file.parent.is_dir() and not file.exists() else None


def place_of(store: StoreName, scope: Scope) -> MemoryFile:
    """Return where a write of `scope` goes: ``user`` follows the person, ``memory`` the agent."""
    return MemoryFile(store, folder_of(scope.user if store == "user" else scope.agent))


def places(home: Path, agent: str | None, user: str | None) -> tuple[MemoryFile, ...]:
    """Return the files a recall may read; None stands for every owner that has one."""
    owners: tuple[tuple[StoreName, str | None], ...] = (("memory", agent), ("user", user))
    return tuple(
        MemoryFile(store, folder)
        for store, owner in owners
        for folder in (_all_folders(home / store) if owner is None else (folder_of(owner),))
    )


def folder_of(owner: str) -> str:
    """Return the directory name of an agent or a user: safe, and different for different ids."""
    if _PLAIN.fullmatch(owner) and not _RESERVED.fullmatch(owner):
        return owner
    readable = _UNSAFE.sub("-", owner.lower())[:_READABLE].strip("-")
    return f"{readable}~{derived_id('folder', owner)}"


def _all_folders(parent: Path) -> tuple[str, ...]:
    if not parent.is_dir():
        return ()
    return tuple(sorted(entry.name for entry in parent.iterdir() if entry.is_dir()))
