"""What of an archive is not read: tombstones hide events, and damage is raised or noted."""

import msgspec

from memorybus.archive.objects.store import Objects
from memorybus.errors import ArchiveDamaged, ArchiveError
from memorybus.msgspec_types import prepared
from memorybus.query.query import EVERYTHING, Query

FOLDER = "tombstones"


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """What is forgotten, and why."""

    id: str  # the tombstone's id
    query: Query  # the events that it hides
    reason: str = ""  # the operator's words
    at: int = 0  # when it was written (wall time, milliseconds)
    by: str = ""  # who wrote it, as ``user@host``


def read_all(objects: Objects, tombstones: dict[str, Tombstone]) -> dict[str, Tombstone]:
    """Return the tombstones by file name; if one cannot be read, no event may be."""
    names = [file.name for file in objects.list(FOLDER) if file.name.endswith(".json")]
    return {name: tombstones.get(name) or _read(objects, name) for name in names}


def _read(objects: Objects, name: str) -> Tombstone:
    data = objects.get(name)
    try:
        return msgspec.json.decode(data or b"", type=prepared(Tombstone))
    except msgspec.MsgspecError as error:
        raise ArchiveDamaged(
            f"{objects.where}/{name}: is not a tombstone ({error}); what it hides is unknown, so "
            f"nothing is read; restore it from a backup"
        ) from error


def write(objects: Objects, tombstone: Tombstone) -> bool:
    """Write a tombstone; False if its id is taken. `ValueError`: it would hide everything."""
    if tombstone.query == EVERYTHING:
        raise ValueError("a tombstone needs a query of what it hides")
    name = f"{FOLDER}/{tombstone.id}.json"
    return objects.put_new(name, msgspec.json.encode(tombstone))


class DamageHandler:
    """Raises damage as an error, or notes it as a message so that the rest can be read."""

    def __init__(self, messages: list[str] | None) -> None:
        self._messages = messages
        self.found = False  # whether damage was noted here

    def for_partition(self) -> "DamageHandler":
        """Return a handler that does the same, and whose `found` concerns one partition only."""
        return DamageHandler(self._messages)

    def add(self, error: ArchiveError) -> None:
        if self._messages is None:
            raise error
        self.found = True
        if str(error) not in self._messages:
            self._messages.append(str(error))


RAISE_DAMAGE = DamageHandler(None)
"""The handler for a caller that wants every damage raised as an error."""
