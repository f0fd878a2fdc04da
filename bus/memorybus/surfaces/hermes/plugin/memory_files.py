"""Hermes's memory files, compared with what hooks told: a write that had no hook is found here.

A background review, an approval and a hand edit change ``memories/MEMORY.md`` and ``USER.md``
without a word. So at every turn's boundary the two files are looked at (two `stat` calls while
nothing changed); what no hook explained is published with the origin ``file``. What the files held
when they were last looked at is noted in `data_dir`, one file for each home, so that nothing is
missed between two processes and nothing told twice. At the first look all entries are
new: they are imported, under the ids that ``memorybus hermes reconcile`` gives them.

Editors write files in place, and homes may be away. So a version of a file counts once it is a
second old; one that is missing, empty, or lacks more than half of what was there counts only if it
still does after ten seconds; and without its directory nothing counts.
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
from memorybus.surfaces.hermes.entries import (
    IMPORTED,
    Entries,
    FileWrite,
    changes,
    import_id,
    parse,
    same,
)
from memorybus.surfaces.hermes.plugin.file_notes import MISSING, FileNotes, SeenFiles, Signature

if TYPE_CHECKING:
    from memorybus import MemoryBus

_log = logging.getLogger("memorybus")

FOUND = {"origin": "file"}
"""Provenance of a change that no hook told of."""

FILES: tuple[tuple[StoreName, str], ...] = (("memory", "MEMORY.md"), ("user", "USER.md"))

_AT_REST = 1.0
"""Seconds after which a version of a file is taken for whole."""

_MISSED = 10.0
"""Seconds for which most of a file must be gone before that is believed."""

_CLAIMED = 5.0
"""Seconds in which a hook may come after the change it tells of was found in the file."""

_LARGEST = 1 << 20
"""Bytes of a memory file that is read; Hermes's own are a few thousand (G10)."""


_HEADINGS = "\n".join(
    ("═" * 46, "MEMORY (your personal notes)", "USER PROFILE (who the user is)", "§")
)
"""What Hermes 0.19 puts around the entries (``tools/memory_tool.py``)."""


class MemoryFiles:
    """The watch over one home's files. Safe to call from any thread.

    Args:
        home: the HERMES_HOME.
        bus: where changes are published.
        clock: time.
    """

    def __init__(self, home: Path, bus: "MemoryBus", clock: Clock) -> None:
        """Look at nothing yet."""
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

    def look(self, session: Session) -> None:
        """Publish what changed without a hook, on behalf of a session.

        Raises:
            SpoolFull: it will be found again at the next look.
        """
        if not self._lock.acquire(blocking=False):
            return  # another thread is looking
        try:
            found = {store: _signature(self._directory / name) for store, name in FILES}
            if found == self._handled and session.scope.user in self._users:
                return
            if self._directory.is_dir():
                self._compare(session, found)
        finally:
            self._lock.release()

    def shown(self) -> str:
        """Return what Hermes itself puts into its system prompt of these files."""
        texts = [_HEADINGS]
        for _, name in FILES:
            with contextlib.suppress(OSError), (self._directory / name).open("rb") as file:
                texts.append(file.read(_LARGEST).decode("utf-8", "replace"))
        return "\n".join(texts)

    @contextmanager
    def writing(self, write: FileWrite) -> Iterator[bool]:
        """Publish a hook's write within this; true if the file has not told of it already."""
        with self._lock:
            fresh = not self._claim(write)
            yield fresh
            if fresh:
                self._notes.hear(write)

    # -- comparing --------------------------------------------------------------------------------

    def _compare(self, session: Session, found: dict[StoreName, Signature]) -> None:
        with self._notes.opened() as noted:
            if noted is None:
                return
            if session.scope.user not in noted.users:
                noted.users = (*noted.users, session.scope.user)[:2]
            for store, name in FILES:
                if found[store] != noted.signatures.get(store, MISSING):
                    self._compare_one(session, noted, store, name, found[store])
            self._users.add(session.scope.user)
            self._handled = {
                store: signature
                for store, signature in found.items()
                if noted.signatures.get(store, MISSING) == signature
            }

    def _compare_one(
        self, session: Session, noted: SeenFiles, store: StoreName, name: str, signature: Signature
    ) -> None:
        before = noted.entries.get(store, ())
        now = self._entries(self._directory / name, signature)
        if now is None or not self._believed(store, signature, before, now):
            return
        for write in changes(before, now, store):
            self._publish(session, noted, write)
        noted.revision += 1
        noted.entries[store] = now
        noted.signatures[store] = signature

    def _entries(self, path: Path, signature: Signature) -> Entries | None:
        """Return a file's entries, or None if it cannot be read or is another one by now."""
        if signature == MISSING:
            return ()
        if signature[1] > _LARGEST:
            _log.warning("memorybus: %s is too large to be watched", path)
            return None
        try:
            entries = parse(path.read_bytes().decode())
        except (OSError, UnicodeDecodeError) as error:
            _log.debug("%s: %s", path, error)
            return None
        return entries if _signature(path) == signature else None

    def _believed(
        self, store: StoreName, signature: Signature, before: Entries, now: Entries
    ) -> bool:
        moment = self._clock.monotonic()
        first, since = self._first.setdefault(store, (signature, moment))
        if first != signature:
            self._first[store], since = (signature, moment), moment
        gone = len(set(before) - set(now))
        if gone * 2 > len(before) > 0 and len(now) < len(before):
            return moment - since >= _MISSED
        age = self._clock.now_ms() / 1000 - signature[0] / 1e9
        return age >= _AT_REST or moment - since >= _AT_REST

    # -- publishing -------------------------------------------------------------------------------

    def _publish(self, session: Session, noted: SeenFiles, write: FileWrite) -> None:
        """Publish a change under an id of its own: found again after a crash, it is the same."""
        scope = self._owner(session.scope, noted, write.store)
        key = store_key(write.store, scope)
        first = write.store not in noted.signatures
        found = (self._home, noted.revision, *msgspec.structs.astuple(write))
        self._bus.publish(
            memory_write(
                write.action,
                write.store,
                write.content,
                write.old_text,
                IMPORTED if first else FOUND,
            ),
            key=key,
            scope=scope,
            session=session.ref,
            event_id=import_id(key, write.content) if first else derived_id("file", key, *found),
        )
        self._told.append((write, self._clock.monotonic() + _CLAIMED))

    def _owner(self, scope: Scope, noted: SeenFiles, store: StoreName) -> Scope:
        """Return whose a change is: of several persons at one home nobody knows who is meant."""
        if store == "user" and noted.users != (scope.user,):
            return msgspec.structs.replace(scope, user=self._bus.settings.user)
        return scope

    # -- what hooks told --------------------------------------------------------------------------

    def _claim(self, write: FileWrite) -> bool:
        """Say whether the file has told of a hook's write already; once for each change."""
        now = self._clock.monotonic()
        self._told = [(told, until) for told, until in self._told if until > now]
        for i, (told, _) in enumerate(self._told):
            if same(told, write):
                del self._told[i]
                return True
        return False


def _signature(path: Path) -> Signature:
    try:
        found = path.stat()
    except OSError:
        return MISSING
    return (found.st_mtime_ns, found.st_size, found.st_ino)
