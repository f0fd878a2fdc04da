"""Writes the rows of corrections, which a tool makes: a note replaces what a fact says.

A correction and the fact that it corrects may come from events of two order keys, in any order. A
correction is therefore stored apart from the facts, with the name or the text of the fact that it
corrects, and both are compared when facts are read (G8).
"""

from collections.abc import Sequence

from memorybus_providers.base import HookContext
from memorybus_providers.postgres.link import Connection
from memorybus_providers.postgres.texts import encode_text
from memorybus_providers.postgres.writing.places import Places
from memorybus_providers.ranking.facts import clean
from memorybus_providers.ranking.succession import Correction

_ADD = """
insert into corrections(scope, event_id, session, at, fact, old, note)
values (%s, %s, %s, %s, %s, %s, %s) on conflict do nothing
"""
_RETRACT = """
delete from corrections
where scope = %(scope)s and event_id = any(%(events)s)
    and session in (select id from sessions where scope = %(scope)s and root = %(root)s)
"""


class PostgresCorrections:
    """Writes corrections in the transaction that `db` has open."""

    def __init__(self, db: Connection, places: Places) -> None:
        self._db = db
        self._places = places

    def add(self, fact: str, old: str, note: str, ctx: HookContext) -> Correction:
        """Correct a fact, given by its name or else by a text that it contains, with a note."""
        place = self._places.get(self._db, ctx)
        event_id = bytes.fromhex(ctx.event_id)
        given = (place.scope, event_id, place.session, ctx.at, fact, encode_text(old), note)
        self._db.execute(_ADD, given)
        return Correction(fact, clean(old), note, ctx.at)

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Delete the corrections that these events of the context's lineage made."""
        events = [bytes.fromhex(event_id) for event_id in event_ids]
        scope = self._places.get(self._db, ctx).scope
        given = {"scope": scope, "root": encode_text(ctx.session.root), "events": events}
        self._db.execute(_RETRACT, given)
