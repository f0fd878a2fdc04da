"""Memory files on disk: lossless reading, and a rename that happens once.

A pending write owns a *token*, a hidden file beside the memory file. The new text is written into
the token and the token is renamed onto the memory file. So the token's presence says, at any crash,
whether the write has reached the file: present, not yet; absent, already. Nothing needs to be
guessed from the texts, which a person may have changed in between.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from memorybus import private

_ALONE: Final = 0
"""The number of a token that belongs to no pending write."""


def read(file: Path) -> str:
    """Return a file's text, empty if there is none.

    Bytes that are not UTF-8 (a person's editor) survive a read and a write unchanged.
    """
    try:
        return file.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""


def encodable(text: str) -> str:
    """Return `text` with lone surrogates replaced, so that it can be stored and sent."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def readable(text: str) -> str:
    """Return `text` as `read` gave it with bytes that are not UTF-8 replaced, for display."""
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
    """Rename the token, holding `text`, onto the file; only remove it if `text` is None.

    Durable when it returns. The file keeps its permissions.
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
    place_token(home, file, _ALONE)
    consume_token(file, _ALONE, text)


def remove(file: Path) -> None:
    """Remove a file, if it is there, and its folder, if nothing else is in it."""
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
