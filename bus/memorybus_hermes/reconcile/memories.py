"""Imports the entries of MEMORY.md and USER.md that the log lacks because they predate the bus."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from memorybus import MemoryBus, clean_text, memory_write, store_key
from memorybus.errors import EventError
from memorybus.events import Scope, SessionRef, StoreName

from memorybus_hermes import entries
from memorybus_hermes.home import HermesHome
from memorybus_hermes.masking import mask_as_host
from memorybus_hermes.reconcile.history_index import HistoryIndex

_STORES: tuple[tuple[str, StoreName], ...] = (("MEMORY.md", "memory"), ("USER.md", "user"))


class FileEntry(msgspec.Struct, frozen=True):
    """An entry of a memory file; `at` is the file's last change, milliseconds since the epoch."""

    store: StoreName
    content: str
    at: int


def find_missing(home: HermesHome, scope: Scope, index: HistoryIndex) -> list[FileEntry]:
    """Return the entries of a home's memory files that were never written to the log."""
    return [
        entry
        for name, store in _STORES
        for entry in _entries(home.memories / name, store)
        if not index.has_write(store_key(store, scope), entry.content)
    ]


def _entries(path: Path, store: StoreName) -> Iterator[FileEntry]:
    if not path.is_file():
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    at = path.stat().st_mtime_ns // 1_000_000
    yield from (
        FileEntry(store, entry, at)
        for entry in entries.parse_entries(text)
        if clean_text(entry).strip()
    )


def publish(
    bus: MemoryBus,
    scope: Scope,
    missing: list[FileEntry],
    accepted: Callable[[Callable[[], object]], None],
) -> list[str]:
    """Publish entries as additions, masked, each under an id derived from its text.

    Returns:
        What the bus refused, and why; one line for each.
    """
    refused = []
    for entry in missing:
        try:
            accepted(_publish_call(bus, scope, entry))
        except EventError as error:
            refused.append(f"{entry.store}: {error}")
    return refused


def _publish_call(bus: MemoryBus, scope: Scope, entry: FileEntry) -> Callable[[], object]:
    key = store_key(entry.store, scope)
    content = mask_as_host(entry.content)
    session = f"memories-of-{scope.agent}"
    return lambda: bus.publish(
        memory_write("add", entry.store, content, "", entries.IMPORTED),
        event_id=entries.import_id(key, content),
        key=key,
        scope=scope,
        session=SessionRef(id=session, root=session),
        at=entry.at,
    )
