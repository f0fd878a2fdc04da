"""Corrections by tool: a note that holds in the place of a fact.

A correction and what it puts right may be events of two keys, in any order. It is therefore kept
beside the facts, under the name or the text of the fact that it corrects, and compared when they
are read (G8).
"""

import json
import sqlite3
from collections.abc import Sequence

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.holographic.rows import SCOPES, limits_of
from memorybus_providers.holographic.writing.sessions import Sessions
from memorybus_providers.ranking.facts import clean
from memorybus_providers.truth.changes import Correction

MOST = 1_000
"""Corrections of a scope that are looked at, the newest (G10)."""

_ADD = "insert or ignore into corrections values (?, ?, ?, ?, ?, ?, ?)"
_RETRACT = """
delete from corrections
where session in (select id from sessions where scope = :scope and root = :root)
    and lower(hex(event_id)) in (select value from json_each(:events))
"""
_KNOWN = f"""
select fact, old, note, at from corrections where scope in ({SCOPES})
order by at desc, event_id desc limit {MOST}
"""  # noqa: S608  constants of our own


class SqliteCorrections:
    """Writes and reads corrections; writes inside the transaction its caller has open."""

    def __init__(self, db: sqlite3.Connection, places: Sessions) -> None:
        """Write through `db`."""
        self._db = db
        self._places = places

    def add(self, fact: str, old: str, note: str, ctx: HookContext) -> Correction:
        """Correct a fact, known by its name or else by a text that it holds, with a note."""
        place = self._places.get(ctx)
        made = Correction(fact, clean(old), note, ctx.at)
        event_id = bytes.fromhex(ctx.event_id)
        given = (place.scope, event_id, place.session, ctx.at, made.fact, made.old, made.note)
        self._db.execute(_ADD, given)
        return made

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Forget corrections that were made in some events of the context's lineage."""
        where = {"scope": self._places.get(ctx).scope, "root": clean(ctx.session.root)}
        self._db.execute(_RETRACT, {"events": json.dumps(event_ids), **where})


def known_corrections(db: sqlite3.Connection, whose: RecallScope) -> list[Correction]:
    """Return the corrections within a scope, the newest first."""
    return [Correction(*row) for row in db.execute(_KNOWN, limits_of(whose))]
