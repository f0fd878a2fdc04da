"""A spool's rows: their tables, how they are read in order, and what a damaged file still has."""

import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeAlias

from memorybus.spool.database import salvaging

Row: TypeAlias = tuple[int, int, bytes, bytes, bytes]
"""sequence, partition, event id (16 bytes), payload digest, body (msgpack)."""

ROW_OVERHEAD = 64
"""Bytes a row takes beside its body, for the spool's bound."""

SCHEMA = """
create table if not exists events(
    seq integer primary key, partition integer not null, id blob not null, digest blob not null,
    body blob not null);
create table if not exists deleted(partition integer primary key, seq integer not null);
"""

INSERT = "insert into events values (?, ?, ?, ?, ?)"

AFTER = "select seq, partition, id, digest, body from events where seq > ? order by seq limit ?"

AFTER_OF_PARTITION = (
    "select seq, partition, id, digest, body from events "
    "where seq > ? and partition = ? order by seq limit ?"
)

_WHOLE_ROWS = (
    "select seq, partition, id, digest, body from events where typeof(partition) = 'integer' "
    "and typeof(id) = 'blob' and typeof(digest) = 'blob' and typeof(body) = 'blob'"
)


def bounded(rows: Iterable[Row], max_bytes: int) -> list[Row]:
    """Return the first rows whose bodies fit into so many bytes; at least one."""
    taken: list[Row] = []
    size = 0
    for row in rows:
        size += len(row[4])
        if taken and size > max_bytes:
            break
        taken.append(row)
    return taken


def readable(path: Path) -> Iterator[Row]:
    """Give what can still be read, in order: up to the damage, then from behind it.

    One row is held at a time: the file may be much larger than the memory of its agent. What is
    behind the damage is reached from the back, and read again from there in order.
    """
    last = 0
    for row in _until_damage(path, f"{_WHOLE_ROWS} order by seq"):
        last = row[0]
        yield row
    behind = deque(_until_damage(path, f"{_WHOLE_ROWS} and seq > ? order by seq desc", last), 1)
    if behind:
        yield from _until_damage(path, f"{_WHOLE_ROWS} and seq >= ? order by seq", behind[0][0])


def _until_damage(path: Path, sql: str, *given: int) -> Iterator[Row]:
    with closing(salvaging(path)) as db, suppress(sqlite3.DatabaseError):
        yield from db.execute(sql, given)
