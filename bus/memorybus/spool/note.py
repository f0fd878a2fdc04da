"""A file beside a spool says what is unsent: only the living owner can open the spool itself."""

from contextlib import suppress
from pathlib import Path

import msgspec

from memorybus import private
from memorybus.msgspec_types import prepared

NOTE_SUFFIX = ".unsent"
"""Suffix of the file that says what is unsent."""

SENT_SUFFIX = ".sent"
"""Suffix of the file that says since when a spool without an owner had nothing to send."""

PER_MS = 1_024
"""Sequences per millisecond: a sequence tells the time at which it was assigned."""

_NOTE_BYTES = 128


class SpoolStats(msgspec.Struct, frozen=True):
    """What is unsent: rows, bytes of their bodies, and when the oldest was spooled (ms)."""

    events: int = 0
    size: int = 0
    oldest_at: int | None = None


def spooled_at(sequence: int) -> int:
    """Return the wall time (ms) at which a sequence was assigned."""
    return sequence // PER_MS


def write_note(spool: Path, stats: SpoolStats) -> None:
    """Write the note in place, always with the same length: a full disk has no room for another.

    Without room there is no note: a missing note must not keep a spool from opening.
    """
    note = spool.with_suffix(NOTE_SUFFIX)
    mode = "r+b" if note.exists() else "wb"
    with suppress(OSError), open(note, mode, opener=private.opener) as file:
        file.write(msgspec.json.encode(stats).ljust(_NOTE_BYTES))


def read_note(spool: Path) -> SpoolStats:
    """Return what the owner noted in the last few seconds; nothing if there is no note."""
    try:
        return msgspec.json.decode(
            spool.with_suffix(NOTE_SUFFIX).read_bytes(), type=prepared(SpoolStats)
        )
    except (OSError, msgspec.MsgspecError):
        return SpoolStats()
