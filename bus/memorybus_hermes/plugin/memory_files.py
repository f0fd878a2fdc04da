"""Watches Hermes's memory files, to find changes that no hook reported.

A background review, an approval and a hand edit change ``memories/MEMORY.md`` and ``USER.md``
without a hook. So the two files are checked at every turn's boundary (two `stat` calls if nothing
changed); a change that no hook explains is published with the origin ``file``. The entries of the
last check are noted in `data_dir`, one file for each home, so that no change is missed between two
processes, and none is published twice. At the first check all entries are new: they are imported
under the ids that ``memorybus hermes reconcile`` gives them.

The files have what Hermes masks when it calls a hook. So an entry that was reported keeps the words
of the hook, and all others are masked as Hermes would have masked them.

Editors write files in place, and homes may be unmounted. So a version of a file is read only when
it is a second old. A file that is missing, empty, or lacks more than half of its entries is
believed only after ten seconds. Without the directory nothing is read.
"""

import contextlib
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from memorybus import Session, memory_write, store_key
from memorybus.clock import Clock
from memorybus.events import Scope, StoreName
from memorybus.ids import derived_id, text_digest

from memorybus_hermes.masking import is_masked_copy, mask_as_host
from memorybus_hermes.plugin.file_notes import NO_FILE, FileNotes, SeenFiles, Signature
from memorybus_hermes.scopes import (
    IMPORTED,
    FileEntries,
    FileWrite,
    find_changes,
    import_id,
    is_same_write,
    parse_entries,
)

if TYPE_CHECKING:
    from memorybus import MemoryBus

_log = logging.getLogger("memorybus")

FROM_FILE = {"origin": "file"}  # provenance of a change that no hook reported

FILES: tuple[tuple[StoreName, str], ...] = (("memory", "MEMORY.md"), ("user", "USER.md"))

_AT_REST_SECONDS = 1.0  # seconds after which a version of a file counts as completely written

_GONE_SECONDS = 10.0  # seconds for which most of a file must be missing before that is believed

_HOOK_DELAY_SECONDS = 5.0
"""Seconds in which a hook may report a change after it was found in the file."""

_MAX_FILE_BYTES = 1 << 20
"""The most bytes of a memory file that are read; Hermes's own have a few thousand (G10)."""


_TITLES = "Your notes\nYour notes:\nAbout the user\nAbout the user:"
"""What `builtin` puts above the entries: with these, its part has nothing that is new to Hermes."""


class MemoryFiles:
    """The watch over one home's files. Safe to call from any thread."""

    def __init__(self, home: Path, bus: "MemoryBus", clock: Clock) -> None:
        self._directory = home / "memories"
        self._home = str(home)
        self._bus = bus
        self._clock = clock
        settings = bus.settings
        name = f"{settings.log_name}-{text_digest(self._home)}"
        self._notes = FileNotes(settings.data_dir / "hermes" / name)
        self._lock = threading.Lock()
        self._handled: dict[StoreName, Signature] = {}
        self._users: set[str] = set()
        self._first: dict[StoreName, tuple[Signature, float]] = {}
        self._told: list[tuple[FileWrite, float]] = []

    def publish_changes(self, session: Session) -> None:
        """Publish changes that no hook reported, on behalf of a session.

        Raises:
            SpoolFull: the changes will be found again at the next check.
        """
        if not self._lock.acquire(blocking=False):
            return  # another thread compares them already
        try:
            signatures = {store: _signature(self._directory / name) for store, name in FILES}
            if signatures == self._handled and session.scope.user in self._users:
                return
            if self._directory.is_dir():
                self._compare(session, signatures)
        finally:
            self._lock.release()

    def prompt_text(self) -> str:
        """Return what Hermes itself puts into its system prompt from these files, with titles."""
        texts = [_TITLES]
        for _, name in FILES:
            with contextlib.suppress(OSError), (self._directory / name).open("rb") as file:
                texts.append(file.read(_MAX_FILE_BYTES).decode("utf-8", "replace"))
        return "\n".join(texts)

    @contextmanager
    def writing(self, write: FileWrite) -> Iterator[bool]:
        """Yield whether the block has to publish a hook's write; not if the file had shown it."""
        with self._lock:
            fresh = not self._was_found_in_file(write)
            yield fresh
            if fresh:
                self._notes.append(write)

    # -- comparing --------------------------------------------------------------------------------

    def _compare(self, session: Session, found: dict[StoreName, Signature]) -> None:
        with self._notes.locked() as noted:
            if noted is None:
                return
            if session.scope.user not in noted.users:
                noted.users = (*noted.users, session.scope.user)[:2]
            for store, name in FILES:
                if found[store] != noted.signatures.get(store):
                    self._compare_one(session, noted, store, name, found[store])
            self._users.add(session.scope.user)
            self._handled = {
                store: signature
                for store, signature in found.items()
                if noted.signatures.get(store) == signature
            }

    def _compare_one(
        self, session: Session, noted: SeenFiles, store: StoreName, name: str, signature: Signature
    ) -> None:
        before = noted.entries.get(store, ())
        stored = self._entries(self._directory / name, signature)
        now = None if stored is None else _masked_entries(before, stored)
        if now is None or not self._is_settled(store, signature, before, now):
            return
        for write in find_changes(before, now, store):
            self._publish(session, noted, write)
        noted.revision += 1
        noted.entries[store] = now
        noted.signatures[store] = signature

    def _entries(self, path: Path, signature: Signature) -> FileEntries | None:
        """Return a file's entries, or None if it cannot be read or has changed meanwhile."""
        if signature == NO_FILE:
            return ()
        if signature[1] > _MAX_FILE_BYTES:
            _log.warning("memorybus: %s is too large to be watched", path)
            return None
        try:
            entries = parse_entries(path.read_bytes().decode())
        except (OSError, UnicodeDecodeError) as error:
            _log.debug("%s: %s", path, error)
            return None
        return entries if _signature(path) == signature else None

    def _is_settled(
        self, store: StoreName, signature: Signature, before: FileEntries, now: FileEntries
    ) -> bool:
        moment = self._clock.monotonic()
        first, since = self._first.setdefault(store, (signature, moment))
        if first != signature:
            self._first[store], since = (signature, moment), moment
        gone = len(set(before) - set(now))
        if gone * 2 > len(before) > 0 and len(now) < len(before):
            return moment - since >= _GONE_SECONDS
        age = self._clock.now_ms() / 1000 - signature[0] / 1e9
        return age >= _AT_REST_SECONDS or moment - since >= _AT_REST_SECONDS

    # -- publishing -------------------------------------------------------------------------------

    def _publish(self, session: Session, noted: SeenFiles, write: FileWrite) -> None:
        """Publish a change under a derived id, so that a repetition after a crash has the same."""
        scope = self._owner(session.scope, noted, write.store)
        key = store_key(write.store, scope)
        first = write.store not in noted.signatures
        occurrence = (self._home, noted.revision, *msgspec.structs.astuple(write))
        self._bus.publish(
            memory_write(
                write.action,
                write.store,
                write.content,
                write.old_text,
                IMPORTED if first else FROM_FILE,
            ),
            key=key,
            scope=scope,
            session=session.ref,
            event_id=import_id(key, write.content)
            if first
            else derived_id("file", key, *occurrence),
        )
        self._told.append((write, self._clock.monotonic() + _HOOK_DELAY_SECONDS))

    def _owner(self, scope: Scope, noted: SeenFiles, store: StoreName) -> Scope:
        """Return the scope of a change; if several people use one home, its author is unknown."""
        if store == "user" and noted.users != (scope.user,):
            return msgspec.structs.replace(scope, user=self._bus.settings.user)
        return scope

    # -- what hooks reported ----------------------------------------------------------------------

    def _was_found_in_file(self, write: FileWrite) -> bool:
        """Return whether a hook's write was found in the file already; each change counts once."""
        now = self._clock.monotonic()
        self._told = [(write, until) for write, until in self._told if until > now]
        for i, (told, _) in enumerate(self._told):
            if is_same_write(told, write):
                del self._told[i]
                return True
        return False


def _masked_entries(noted: FileEntries, stored: FileEntries) -> FileEntries:
    """Return a file's entries without secrets; those that were noted keep the words of the note."""
    return tuple(dict.fromkeys(_masked_entry(noted, entry) for entry in stored))


def _masked_entry(noted: FileEntries, entry: str) -> str:
    copies = (copy for copy in noted if copy == entry or is_masked_copy(copy, entry))
    return next(copies, None) or mask_as_host(entry)


def _signature(path: Path) -> Signature:
    try:
        stat = path.stat()
    except OSError:
        return NO_FILE
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)
