"""Corrections that a tool makes: a note replaces what a fact says.

A correction and the fact that it corrects may come from events of two order keys, in any order. A
correction is therefore stored apart from the facts, with the name or the text of the fact that it
corrects, and both are compared when facts are read (G8).
"""

import json
import sqlite3
from collections.abc import Sequence

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.holographic.rows import SCOPES, limits_of
from memorybus_providers.holographic.writing.sessions import Sessions
from memorybus_providers.ranking.facts import clean
from memorybus_providers.ranking.succession import Correction

MAX_CORRECTIONS = 1_000  # the most corrections of a scope that are read, the newest (G10)

_ADD = "insert or ignore into corrections values (?, ?, ?, ?, ?, ?, ?)"
_RETRACT = """
delete from corrections where scope = :scope
    and session in (select id from sessions where scope = :scope and root = :root)
    and lower(hex(event_id)) in (select value from json_each(:events))
"""
_KNOWN = f"""
select fact, old, note, at from corrections where scope in ({SCOPES})
order by at desc, event_id desc limit {MAX_CORRECTIONS}
"""  # noqa: S608  constants of our own


class SqliteCorrections:
    """Writes corrections, inside the transaction that its caller has open."""

    def __init__(self, db: sqlite3.Connection, places: Sessions) -> None:
        self._db = db
        self._places = places

    def add(self, fact: str, old: str, note: str, ctx: HookContext) -> Correction:
        """Correct a fact, given by its name or else by a text that it contains, with a note."""
        place = self._places.get(ctx)
        made = Correction(fact, clean(old), note, ctx.at)
        event_id = bytes.fromhex(ctx.event_id)
        given = (place.scope, event_id, place.session, ctx.at, made.fact, made.old, made.note)
        self._db.execute(_ADD, given)
        return made

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Delete the corrections that these events of the context's lineage made."""
        where = {"scope": self._places.get(ctx).scope, "root": clean(ctx.session.root)}
        self._db.execute(_RETRACT, {"events": json.dumps(event_ids), **where})


def known_corrections(db: sqlite3.Connection, scope: RecallScope) -> list[Correction]:
    """Return the corrections within a scope, the newest first."""
    return [Correction(*row) for row in db.execute(_KNOWN, limits_of(db, scope))]
