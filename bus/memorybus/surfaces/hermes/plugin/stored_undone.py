"""What a living plugin asks Hermes's ``state.db``: which turns were undone, and whether one stands.

A read waits for nobody, and what cannot be read says nothing (G9): `reconcile` finds it later.
"""

from collections.abc import Iterable
from pathlib import Path

from memorybus.surfaces.hermes.plugin.undone import Taken, mark_of
from memorybus.surfaces.hermes.transcripts.scaffolding import user_text
from memorybus.surfaces.hermes.transcripts.state_db import Row, StateDb, StateDbError
from memorybus.surfaces.hermes.transcripts.stored_turns import flattened

_MOST = 64
"""Messages that are looked at, the newest (G10): more turns of a session are not remembered."""


def taken_back(home: Path, session_id: str) -> list[Taken] | None:
    """Return the newest messages of the person's that were taken back, oldest first.

    None if that cannot be told: no such file, locked, damaged or of another schema.
    """
    try:
        with StateDb(home / "state.db", wait=0) as db:
            rows = db.newest(session_id, "user", taken_back=True, most=_MOST)
    except StateDbError:
        return None
    return [Taken(mark_of(user_text(flattened(row.content))), row.at) for row in reversed(rows)]


def stands(home: Path, session_id: str, answer: str) -> bool:
    """Say whether an answer is no taken-back one alone; in doubt, it is none."""
    try:
        with StateDb(home / "state.db", wait=0) as db:
            gone = db.newest(session_id, "assistant", taken_back=True, most=_MOST)
            there = db.newest(session_id, "assistant", taken_back=False, most=_MOST)
    except StateDbError:
        return True
    return _holds(there, answer) or not _holds(gone, answer)


def _holds(rows: Iterable[Row], answer: str) -> bool:
    mark = mark_of(answer)
    return any(mark_of(flattened(row.content)) == mark for row in rows)
