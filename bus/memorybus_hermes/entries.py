"""The entries of Hermes's memory files: parse them, apply writes, find changes.

Pure. The delimiter is that of Hermes 0.19 (``tools/memory_tool.py``).
"""

from collections.abc import Sequence
from difflib import SequenceMatcher

import msgspec
from memorybus.events import StoreName, WriteAction
from memorybus.ids import derived_id, text_digest

_DELIMITER = "\n§\n"

IMPORTED = {"origin": "import"}
"""Provenance of an entry that existed before the bus."""

FileEntries = tuple[str, ...]


class FileWrite(msgspec.Struct, frozen=True):
    """One write to a store, in the words of `MemoryWritten`."""

    action: WriteAction
    store: StoreName
    content: str = ""
    old_text: str = ""


def import_id(key: str, content: str) -> str:
    """Return the event id of an entry's import; every importer derives the same (G2)."""
    return derived_id("reconcile", key, text_digest(content))


def parse_entries(text: str) -> FileEntries:
    """Return the entries of a file, each once, in order."""
    found = (entry.strip() for entry in text.replace("\r\n", "\n").split(_DELIMITER))
    return tuple(dict.fromkeys(entry for entry in found if entry))


def apply_write(entries: FileEntries, write: FileWrite) -> FileEntries:
    """Return the entries after a write; a write whose old text is not found changes nothing."""
    content = write.content.strip()
    if write.action == "add":
        return entries if content in entries else (*entries, content)
    at = next((i for i, entry in enumerate(entries) if write.old_text.strip() in entry), None)
    if at is None:
        return entries
    new = (content,) if write.action == "replace" else ()
    return tuple(dict.fromkeys((*entries[:at], *new, *entries[at + 1 :])))


def find_changes(before: FileEntries, now: FileEntries, store: StoreName) -> list[FileWrite]:
    """Return the writes that turn some entries into others; a new order alone is no write.

    If another entry stands in the place of an old one, the old one counts as replaced. All other
    differences count as removals and additions.
    """
    gone, new = set(before) - set(now), set(now) - set(before)
    writes: list[FileWrite] = []
    matcher = SequenceMatcher(None, before, now, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag != "equal":
            old = [entry for entry in before[i:j] if entry in gone]
            fresh = [entry for entry in now[k:m] if entry in new]
            writes += _pair_writes(old, fresh, store)
    return writes


def _pair_writes(old: Sequence[str], new: Sequence[str], store: StoreName) -> list[FileWrite]:
    both = min(len(old), len(new))
    return [
        *(FileWrite("replace", store, b, a) for a, b in zip(old, new, strict=False)),
        *(FileWrite("remove", store, "", entry) for entry in old[both:]),
        *(FileWrite("add", store, entry) for entry in new[both:]),
    ]


def is_same_write(write: FileWrite, reported: FileWrite) -> bool:
    """Return whether a change that was found in a file is the write that a hook reports."""
    if write.store != reported.store:
        return False
    if reported.action == "remove":
        return write.action == "remove" and reported.old_text.strip() in write.old_text
    return write.action != "remove" and write.content == reported.content.strip()
