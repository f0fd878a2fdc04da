"""Facts in Postgres: how fast they are written and recalled, by the provider alone in one process.

People's turns lie side by side, as in `crowd`. The floor writes the very rows that the provider has
left in its tables into tables of the same kind: batched inserts, the rows of as many turns at once,
one transaction each, in one process. Its rows are ready in memory when its clock starts: it reads
no texts, keeps no ledger and looks nothing up. The server syncs what is committed, as it comes.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from gauge import Figures, LeftOut, Size, p50, p99
from memorybus.events import TurnCompleted
from memorybus_providers.base import ProviderConfig
from memorybus_providers.postgres import PostgresProvider
from memorybus_providers.postgres.migrations import migrate
from memorybus_providers.postgres.options import Where
from recall_lab import BATCH
from texts import turns

from stores import crowd

TURNS_EACH = 250
"""Two facts each: 500 a person, 1,000,000 of 2,000 people."""

FLOOR_TURNS = 20_000
"""Turns of which the floor writes the rows, the first ones."""

_TEXTS = 20_000
_SCALE = 0.15
_MILLION = 1_000_000
_TABLES = ("facts", "postings")

Batch = list[list[tuple[Any, ...]]]
"""The rows of some turns, by table."""


def measure(size: Size) -> Figures:
    """Return milliseconds, and turns a second."""
    said = [
        TurnCompleted(user=turn.user, assistant=turn.assistant)
        for turn in turns(_TEXTS, scale=_SCALE)
    ]
    people = size.past // (2 * TURNS_EACH)
    with server() as url, opened(url) as provider:
        written = crowd.fill(provider, crowd.side_by_side(said, people, TURNS_EACH))
        floor, ours = _floor(url, provider, said, min(people, FLOOR_TURNS // TURNS_EACH))
        among = crowd.asked(provider, "person-1", crowd.told(said, 1, TURNS_EACH))
    facts = people * TURNS_EACH * 2
    suffix = "" if facts >= _MILLION else f"_of_{facts}"
    return {
        "postgres_over_floor": ours / floor,
        "postgres_floor_turns_per_s": floor,
        f"postgres_writes_per_s{suffix}": written,
        f"postgres_recall_p50_ms{suffix}": p50(among),
        f"postgres_recall_p99_ms{suffix}": p99(among),
    }


@contextmanager
def server() -> Iterator[str]:
    """Yield the connection string of an empty database on a server of its own.

    Raises:
        LeftOut: there is none here.
    """
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
    from helpers.services.postgres_server import NoPostgres, PostgresServer

    try:
        running = PostgresServer(fsync="on", shared_buffers="512MB", max_wal_size="4GB")
    except NoPostgres as error:
        raise LeftOut(f"no PostgreSQL runs here: {error}") from error
    try:
        running.start()
        yield running.url()
    finally:
        running.remove()


@contextmanager
def opened(url: str, schema: str = "memorybus") -> Iterator[PostgresProvider]:
    """Open a provider."""
    options = {"url": url, "schema": schema}
    config = ProviderConfig(name="postgres", home=Path(schema), options=options)
    provider = PostgresProvider(config)
    provider.open()
    try:
        yield provider
    finally:
        provider.shutdown()


def _floor(
    url: str, provider: PostgresProvider, said: Sequence[TurnCompleted], people: int
) -> tuple[float, float]:
    """Return turns a second of the floor and of a fresh provider, which take turns on one load."""
    floors, ours = [], []
    for number in range(3):
        with opened(url, f"ours{number}") as fresh:
            ours.append(crowd.fill(fresh, crowd.side_by_side(said, people, TURNS_EACH)))
        batches = _batches(url, f"ours{number}")
        migrate(Where(url, f"floor{number}"))
        floors.append(people * TURNS_EACH / _inserted(url, f"floor{number}", batches))
    return sorted(floors)[1], sorted(ours)[1]


def _batches(url: str, schema: str) -> list[Batch]:
    """Return the rows of a schema, those of `BATCH` turns together."""
    with psycopg.connect(url, options=f"-c search_path={schema}") as db:
        ids = [row[0] for row in db.execute("select id from facts order by id")]
        starts = [ids[n] for n in range(0, len(ids), 2 * BATCH)]
        bounds = zip(starts, [*starts[1:], ids[-1] + 1], strict=True)
        return [
            [
                db.execute(
                    f"select * from {table} where {key} >= %s and {key} < %s", one
                ).fetchall()
                for table, key in zip(_TABLES, ("id", "fact"), strict=True)
            ]
            for one in bounds
        ]


def _inserted(url: str, schema: str, batches: Sequence[Batch]) -> float:
    """Insert rows; return the seconds."""
    with psycopg.connect(url, autocommit=True, options=f"-c search_path={schema}") as db:
        began = time.perf_counter()
        for batch in batches:
            with db.transaction(), db.cursor() as cursor:
                for table, rows in zip(_TABLES, batch, strict=True):
                    marks = ", ".join(["%s"] * len(rows[0]))
                    cursor.executemany(f"insert into {table} values ({marks})", rows)
        return time.perf_counter() - began
