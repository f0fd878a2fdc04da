"""Writes and removes rows of facts, with one posting for each token that a fact contains."""

from collections.abc import Iterable, Sequence

import msgspec

from memorybus_providers.language.indexed_tokens import indexed_tokens
from memorybus_providers.postgres.link import Connection
from memorybus_providers.postgres.texts import LONGEST_NAME, decode_text
from memorybus_providers.ranking.facts import SearchPool, pool_of

NUMBERS = "select nextval('fact_ids') from generate_series(1, %s)"
"""Selects a number of new row numbers, which are sorted before the facts get them in order."""

_FACTS = """
copy facts(id, scope, session, seq, name, event_id, at, kind, speaker, category, tags, content)
from stdin
"""
_POSTINGS = "copy postings(scope, token, fact) from stdin"
_REMOVED = "delete from facts where id = any(%s) returning id, scope, kind, tags, content"
_UNPOSTED = """
delete from postings
using unnest(%s::bigint[], %s::text[], %s::bigint[]) as gone(scope, token, fact)
where postings.scope = gone.scope and postings.token = gone.token collate "C"
    and postings.fact = gone.fact
"""


_Indexed = tuple[int, int, str, str, str]
"""What the index knows of a fact: its number, scope, kind, tags and text."""


class NewFact(msgspec.Struct, frozen=True):
    """The columns of a fact; its texts are encoded (see `texts`)."""

    id: int
    scope: int
    session: int
    seq: int | None
    name: str
    event_id: bytes
    at: int
    kind: str
    speaker: str
    category: str
    tags: str
    content: str


def pool_number(scope: int, pool: SearchPool) -> int:
    """Return the number under which the postings of a scope's pool stand."""
    return -scope if pool == "answers" else scope


def insert(db: Connection, facts: Sequence[NewFact]) -> None:
    """Write facts and their postings, in two streams."""
    with db.cursor() as cursor:
        with cursor.copy(_FACTS) as copy:
            for fact in facts:
                copy.write_row(msgspec.structs.astuple(fact))
        with cursor.copy(_POSTINGS) as copy:
            for row in _postings(
                (fact.id, fact.scope, fact.kind, fact.tags, fact.content) for fact in facts
            ):
                copy.write_row(row)


def post(db: Connection, fact: int, scope: int, kind: str, tags: str, content: str) -> None:
    """Write the postings of one fact whose row exists."""
    with db.cursor() as cursor, cursor.copy(_POSTINGS) as copy:
        for row in _postings([(fact, scope, kind, tags, content)]):
            copy.write_row(row)


def unpost(db: Connection, gone: Iterable[_Indexed]) -> None:
    """Remove the postings of facts."""
    columns = [list(column) for column in zip(*_postings(gone), strict=True)]
    if columns:
        db.execute(_UNPOSTED, columns)


def remove(db: Connection, facts: Sequence[int]) -> None:
    """Remove facts, and their postings."""
    unpost(db, db.execute(_REMOVED, (list(facts),)).fetchall())


def _postings(
    facts: Iterable[_Indexed],
) -> list[tuple[int, str, int]]:
    """Return the postings of these facts, in the order of their index."""
    indexed = {
        (pool_number(scope, pool_of(kind)), token[:LONGEST_NAME], fact)
        for fact, scope, kind, tags, content in facts
        for token in indexed_tokens(decode_text(tags), decode_text(content))
    }
    return sorted(indexed)
