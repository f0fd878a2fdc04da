"""Remembers which rows of a spool Redis may have taken: a row that is sent again is marked.

A lane may have applied an event that Redis lost afterwards. So an event that is sent again says so
in the log (`LoggedEvent.resent`), and a ``lookup`` provider is asked for it first (G4). After a
broken connection, or the death of the owner, rows in doubt count as delivered.
"""

import os
from pathlib import Path

from memorybus import private
from memorybus.spool.note import PER_MS

DELIVERED_SUFFIX = ".delivered"
"""Suffix of the file that says up to which sequence rows may have been delivered."""

_ANNOUNCED_SEQUENCES = 10_000 * PER_MS
"""Sequences that are announced at once, those of ten seconds, so the file is seldom written."""

_NUMBER_WIDTH = 20


class PossiblyDelivered:
    """The rows that Redis may have taken from a spool, by partition. Belongs to the sending thread.

    A file beside the spool tells the next owner. It is written before rows are sent and always has
    the same length, so it can also be written on a full disk. Without it, every row that is found
    in the spool counts as delivered.
    """

    def __init__(self, spool: Path, last: int, *, empty: bool) -> None:
        """Read what the last owner noted.

        Args:
            spool: the spool's file.
            last: no row with a larger sequence is in it now.
            empty: the spool has no row, so no row is in doubt.
        """
        self._file = spool.with_suffix(DELIVERED_SUFFIX)
        self._announced = _read(self._file)
        if self._announced is None and empty:
            self._announced = 0
        self._before = last
        if self._announced is not None:
            self._before = self._announced = min(last, self._announced)
            _write(self._file, self._announced, durable=False)
        self._by_partition: dict[int, int] = {}

    def upto(self, partition: int) -> int:
        """Return the last sequence that Redis may have taken; a later row was never sent."""
        return self._by_partition.get(partition, self._before)

    def note(self, partition: int, sequence: int) -> None:
        """Note that Redis took a partition's rows up to a sequence, or may have."""
        self._by_partition[partition] = max(sequence, self.upto(partition))

    def announce(self, sequence: int) -> None:
        """Note for the next owner that rows up to a sequence are about to be sent."""
        if self._announced is None or sequence > self._announced:
            self._announced = sequence + _ANNOUNCED_SEQUENCES
            _write(self._file, self._announced, durable=True)


def _read(file: Path) -> int | None:
    try:
        return int(file.read_bytes())
    except (OSError, ValueError):
        return None


def _write(file: Path, sequence: int, *, durable: bool) -> None:
    """Write the file; if there is no room for it, delete it: then all rows are in doubt."""
    try:
        with open(file, "r+b" if file.exists() else "wb", opener=private.opener) as out:
            out.write(f"{sequence:0{_NUMBER_WIDTH}d}".encode())
            out.flush()
            if durable:
                os.fsync(out.fileno())
    except OSError:
        file.unlink(missing_ok=True)
