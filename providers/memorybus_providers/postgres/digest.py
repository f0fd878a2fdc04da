"""Makes the digest of the state (G8): all that recalls see, without the numbers of rows.

Keys and rows are those of `holographic.digest`: the same events give both stores the same digest.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from memorybus_providers.digests import StateRows, key_of, paired
from memorybus_providers.postgres.link import Connection
from memorybus_providers.postgres.texts import decode_text

_SAID = """
select facts.name, kind, speaker, at, tags, content, helpful, unhelpful from facts
join sessions on sessions.id = facts.session
left join judgements on judgements.scope = facts.scope and judgements.fact = facts.name
where sessions.scope = %s and sessions.name = %s and seq is not null
order by sessions.root collate "C", seq
"""
_KEPT = """
select sessions.name, at, content, category, tags, helpful, unhelpful from facts
join sessions on sessions.id = facts.session
left join judgements on judgements.scope = facts.scope and judgements.fact = facts.name
where facts.scope = %s and kind = %s and seq is null
order by content collate "C", at, sessions.name collate "C"
"""
_FORMER = """
select sessions.name, at, kind, content, until, successor from former
join sessions on sessions.id = former.session
where former.scope = %s
order by kind, content collate "C", at, until, sessions.name collate "C"
"""
_CORRECTIONS = """
select at, fact, old, note, encode(event_id, 'hex') from corrections
where scope = %s order by event_id
"""
_DERIVED = """
select sessions.name, at, kind, content, supersedes, event_id from derived
join sessions on sessions.id = derived.session
where derived.scope = %s and content <> '' order by event_id collate "C"
"""
_CURATED = """
select fact, state, since, successor, forgotten from curations
where scope = %s and (since > 0 or forgotten > 0) order by fact collate "C"
"""
_SPEAKERS = """
select word, name from speakers where scope = %s order by word collate "C", name collate "C"
"""
_SCOPES = "select id, agent, person, workspace from scopes"
_SESSIONS = "select distinct name from sessions where scope = %s"
_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {"memory": "memory", "user-store": "user", "note": "note", "fact": "fact"}
)


def pairs(db: Connection, after: str = "") -> Iterator[tuple[str, str]]:
    """Yield each key above `after` with its digest; the rows of one key are read at a time."""
    return paired(_keys(db), after)


def _keys(db: Connection) -> Iterator[tuple[str, StateRows]]:
    for row, *names in db.execute(_SCOPES).fetchall():
        scope = [decode_text(name) for name in names]
        for kind, said in _KINDS.items():
            yield key_of(*scope, said), _rows(db, _KEPT, row, kind)
        yield key_of(*scope, "speakers"), _rows(db, _SPEAKERS, row)
        yield key_of(*scope, "former"), _rows(db, _FORMER, row)
        yield key_of(*scope, "corrections"), _rows(db, _CORRECTIONS, row)
        yield key_of(*scope, "derived"), _rows(db, _DERIVED, row)
        yield key_of(*scope, "curated"), _rows(db, _CURATED, row)
        for (name,) in db.execute(_SESSIONS, (row,)).fetchall():
            yield key_of(*scope, "said", decode_text(name)), _rows(db, _SAID, row, name)


def _rows(db: Connection, query: str, *given: int | str) -> StateRows:
    """Yield the rows of a query, which runs when the first row is read."""
    for row in db.execute(query, given):
        yield tuple(decode_text(one) if isinstance(one, str) else one for one in row)
