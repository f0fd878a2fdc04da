"""Records where entries come from: one row for each entry that an event brought."""

import sqlite3
from collections.abc import Iterable, Iterator

import msgspec
from memorybus.ids import text_digest

from memorybus_providers.base import MemoryOwner
from memorybus_providers.builtin.entries import Entries, EntryWrite, apply_write, parse
from memorybus_providers.builtin.files import MemoryFile

_OWNERS = """
select agent, user, workspace, count(*) from origins
where (agent, user, workspace) > (?, ?, ?)
group by agent, user, workspace order by agent, user, workspace
"""


class EntryOrigin(msgspec.Struct, frozen=True):
    """Where an entry comes from: the write that made it.

    Attributes:
        agent: the agent of the session; None if it is not known, as for the next two.
    """

    session: str = ""  # the session of the write
    at: int = 0  # its time, milliseconds
    agent: str | None = None
    user: str | None = None  # the person of the session
    workspace: str | None = None  # the workspace of the session
    event: str = ""  # the id of the write's event; empty if it is not known


class Origins:
    """Reads and writes the rows, inside the transaction that its caller has open."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def read(self, place: MemoryFile) -> dict[str, EntryOrigin]:
        """Return the origins of a file's entries, by the `text_digest` of the entry."""
        rows = self._db.execute(
            "select entry, session, at, agent, user, workspace, event from origins "
            "where store = ? and folder = ?",
            (place.store, place.folder),
        )
        return {entry: EntryOrigin(*origin) for entry, *origin in rows}

    def record(self, place: MemoryFile, before: Entries, writes: Iterable[EntryWrite]) -> None:
        """Record which write made each entry; how writes are batched makes no difference."""
        for write in writes:
            for entry in parse(write.content):
                how = "ignore" if entry in before else "replace"
                self._db.execute(
                    f"insert or {how} into origins values (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                    (*_key(place), text_digest(entry), *_columns_of(write)),
                )
            before, _ = apply_write(before, write)

    def owners(self, after: tuple[str, str, str]) -> Iterator[MemoryOwner]:
        """Yield the owners after `after` whose sessions brought entries, and how many entries."""
        for row in self._db.execute(_OWNERS, after):
            yield MemoryOwner(*row)

    def keep_only(self, place: MemoryFile, entries: Iterable[str]) -> None:
        """Forget the origins of entries that are no longer in the file."""
        living = {text_digest(entry) for entry in entries}
        self._db.executemany(
            "delete from origins where store = ? and folder = ? and entry = ?",
            [(*_key(place), entry) for entry in self.read(place) if entry not in living],
        )


def _key(place: MemoryFile) -> tuple[str, str]:
    return place.store, place.folder


def _columns_of(write: EntryWrite) -> tuple[str | int, ...]:
    """Return the columns of a row that follow the entry."""
    owner = write.scope
    return write.session, write.at, owner.agent, owner.user, owner.workspace, write.event_id
