"""The digest of the holographic state (G8): what recalls see, without the numbers of rows.

Keys: ``<agent>/<user>/<workspace>`` and then ``said/<session>`` (what was said there, in order),
``memory``, ``user`` and ``note`` (what was kept, in any order), ``former`` (what entries of the
stores said before), ``corrections``, ``derived``, ``curated`` (states of facts, and what was
forgotten) or ``speakers`` (names of people). How often and when a fact was found is not in the
digest, since no event says it.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from memorybus_providers.digests import StateRows, key_of, paired

_SAID = """
select facts.name, kind, speaker, at, tags, content, helpful, unhelpful from facts
join sessions on sessions.id = facts.session
left join judgements on judgements.scope = facts.scope and judgements.fact = facts.name
where sessions.scope = ? and sessions.name = ? and seq is not null order by sessions.root, seq
"""
_KEPT = """
select sessions.name, at, content, category, tags, helpful, unhelpful from facts
join sessions on sessions.id = facts.session
left join judgements on judgements.scope = facts.scope and judgements.fact = facts.name
where facts.scope = ? and kind = ? and seq is null order by content, at, sessions.name
"""
_FORMER = """
select sessions.name, at, kind, content, until, successor from former
join sessions on sessions.id = former.session
where former.scope = ? order by kind, content, at, until, sessions.name
"""
_CORRECTIONS = """
select at, fact, old, note, lower(hex(event_id)) from corrections
where scope = ? order by event_id
"""
_DERIVED = """
select sessions.name, at, kind, content, supersedes, event_id from derived
join sessions on sessions.id = derived.session
where derived.scope = ? and content != '' order by event_id
"""
_CURATED = """
select fact, state, since, successor, forgotten from curations
where scope = ? and (since > 0 or forgotten > 0) order by fact
"""
_SPEAKERS = """
select word, name from entities where scope = ? and kind = 'speaker' order by word, name
"""
_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {"memory": "memory", "user-store": "user", "note": "note", "fact": "fact"}
)


def pairs(db: sqlite3.Connection, after: str = "") -> Iterator[tuple[str, str]]:
    """Yield each key above `after` with its digest; the rows of one key are read at a time."""
    return paired(_keys(db), after)


def _keys(db: sqlite3.Connection) -> Iterator[tuple[str, StateRows]]:
    for row, *scope in db.execute("select id, agent, user, workspace from scopes").fetchall():
        for kind, shown in _KINDS.items():
            yield key_of(*scope, shown), _rows(db, _KEPT, row, kind)
        yield key_of(*scope, "speakers"), _rows(db, _SPEAKERS, row)
        yield key_of(*scope, "former"), _rows(db, _FORMER, row)
        yield key_of(*scope, "corrections"), _rows(db, _CORRECTIONS, row)
        yield key_of(*scope, "derived"), _rows(db, _DERIVED, row)
        yield key_of(*scope, "curated"), _rows(db, _CURATED, row)
        sessions = db.execute("select distinct name from sessions where scope = ?", (row,))
        for (name,) in sessions.fetchall():
            yield key_of(*scope, "said", name), _rows(db, _SAID, row, name)


def _rows(db: sqlite3.Connection, query: str, *given: int | str) -> StateRows:
    """Yield the rows of a query, which runs only when the first row is requested."""
    yield from db.execute(query, given)
