"""Reads memory files without loss, and replaces them by a rename that happens exactly once.

A pending write owns a *token*, a hidden file next to the memory file. The new text is written into
the token, and the token is renamed onto the memory file. So after a crash the token shows whether
the write has reached the file: if the token exists, not yet; if not, it has. Nothing must be
guessed from the texts, which a person may have changed meanwhile.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from memorybus import private
from memorybus.events import Scope, StoreName

from memorybus_providers.owners import folder_of

_NO_PENDING_WRITE: Final = 0  # the number of a token that belongs to no pending write


def read(file: Path) -> str:
    """Return a file's text, empty if there is none.

    Bytes that are not UTF-8 (from a person's editor) are the same after a read and a write.
    """
    try:
        return file.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""


def encodable(text: str) -> str:
    """Return `text` with lone surrogates replaced, so that it can be stored and sent."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def readable(text: str) -> str:
    """Return a text from `read` for display, with bytes that are not UTF-8 replaced."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def token_of(file: Path, seq: int) -> Path:
    """Return the token of a pending write to `file`."""
    return file.with_name(f".{file.name}.{seq}.next")


def place_token(home: Path, file: Path, seq: int) -> None:
    """Create a token, durably: its directory and every new parent below `home` are synced."""
    private.directory(file.parent)
    private.file(token_of(file, seq))
    for folder in (file.parent, *file.parent.parents):
        _sync(folder)
        if folder == home:
            break


def consume_token(file: Path, seq: int, text: str | None) -> None:
    """Write `text` into the token and rename it onto the file; if it is None, remove the token.

    The change is durable when this returns. The file keeps its permissions.
    """
    token = token_of(file, seq)
    if text is None:
        token.unlink()
    else:
        token.write_bytes(text.encode("utf-8", "surrogateescape"))
        if file.exists():
            shutil.copymode(file, token)
        _sync(token)
        token.replace(file)
    _sync(file.parent)


def replace_text(home: Path, file: Path, text: str) -> None:
    """Replace a file's text, durably, under the store's write lock."""
    place_token(home, file, _NO_PENDING_WRITE)
    consume_token(file, _NO_PENDING_WRITE, text)


def remove(file: Path) -> None:
    """Remove a file if it exists, and its folder if nothing else is in it."""
    if file.parent.is_dir():
        file.unlink(missing_ok=True)
        with suppress(OSError):
            file.parent.rmdir()
            _sync(file.parent.parent)


def remove_leftovers(file: Path) -> None:
    """Remove tokens of transactions that never committed; only under the store's write lock."""
    for token in file.parent.glob(f".{file.name}.*.next"):
        token.unlink()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
