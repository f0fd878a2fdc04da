"""The tables of vectors, which are made when an embedder is first configured.

A trigger queues facts that are added. If a fact is removed, its vector and its row in the queue are
removed, too.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from memorybus.errors import Unavailable
from psycopg import errors, sql

from memorybus_providers.embedding.embedder import Vector
from memorybus_providers.embedding.vectors import MAX_COMPARED, MAX_NEAREST, Model, UnembeddedFact
from memorybus_providers.finding.meaning_comparison import near_by_cosine
from memorybus_providers.postgres.link import STATEMENT_SECONDS, Connection, Link
from memorybus_providers.postgres.options import Where
from memorybus_providers.postgres.texts import decode_text
from memorybus_providers.ranking.facts import SearchPool
from memorybus_providers.ranking.nearness import Near

MAX_INDEXED_DIMENSIONS = 4_000
"""The most numbers of a vector for pgvector's graph; larger vectors are compared exactly."""

_TABLES_EXIST = "select to_regclass('meaning_model') is not null"
_EXTENSION = "create extension if not exists vector with schema public"
_TABLES = """
create table meaning_model(
    id integer primary key check (id = 1), name text not null, size integer not null,
    mean double precision not null               -- `Model.baseline`
);
create table meaning_filler(id integer primary key check (id = 1), who text not null,
    until timestamptz not null);
insert into meaning_filler values (1, '', '-infinity');
create table meaning_missing(fact bigint primary key references facts on delete cascade);
create function meaning_queue() returns trigger language plpgsql as
$$ begin insert into meaning_missing select id from added; return null; end $$;
create trigger meaning_queued after insert on facts referencing new table as added
    for each statement execute function meaning_queue();
insert into meaning_missing select id from facts;
"""
_VECTORS = """
create table meaning_vectors(
    fact bigint primary key references facts on delete cascade, scope bigint not null,
    vector halfvec({size})                       -- null: the embedder refuses the text
);
create index meaning_vectors_by_scope on meaning_vectors(scope, fact);
alter table meaning_vectors enable row level security;
create policy asked on meaning_vectors for select
    using (scope = any((select asked())::bigint[]));
"""
_GRAPH = """
create index meaning_vectors_near on meaning_vectors using hnsw (vector halfvec_cosine_ops)
"""
_MODEL = "select name, size, mean from meaning_model"
_NAME = "insert into meaning_model(id, name, size, mean) values (1, %s, %s, %s)"
_MISSING = """
select fact, content from meaning_missing join facts on facts.id = fact
order by fact desc limit %s
"""
_KEEP = """
insert into meaning_vectors select facts.id, facts.scope, given.vector::halfvec
from unnest(%s::bigint[], %s::text[]) as given(fact, vector) join facts on facts.id = given.fact
on conflict do nothing
"""
_KEPT = "delete from meaning_missing where fact = any(%s)"
_LACKING = "select count(*) from meaning_missing"
_KEEPING = "select count(*) from meaning_vectors"
_CLAIM = """
update meaning_filler set who = %(who)s, until = clock_timestamp() + interval '60 seconds'
where who = %(who)s or until < clock_timestamp()
"""
_COSINES = """
with usual as (
    select count(*) as facts, avg(cosine) as mean, stddev_pop(cosine) as deviation from (
        select 1 - (vector <=> %(asked)s::halfvec) as cosine from meaning_vectors
        where scope = any(%(scopes)s) and vector is not null order by fact desc limit %(most)s
    ) as newest
)
select fact, 1 - (vector <=> %(asked)s::halfvec), facts, mean, deviation
from meaning_vectors cross join usual
where fact = any(%(facts)s) and scope = any(%(scopes)s) and vector is not null
"""
_NEAREST = """
select fact from meaning_vectors join facts on facts.id = fact
where meaning_vectors.scope = any(%(scopes)s) and vector is not null
    and (kind = 'answer') = %(answers)s
order by vector <=> %(asked)s::halfvec limit %(most)s
"""


class PostgresVectorTables:
    """Reads and writes the tables, each time in its own transaction; belongs to one thread."""

    def __init__(self, link: Link, where: Where) -> None:
        self._link = link
        self._where = where

    def prepare(self) -> None:
        """Make the tables if they are missing; all existing facts are queued.

        Raises:
            Unavailable: the server has no pgvector.
        """
        with self._link.transaction(STATEMENT_SECONDS) as db:
            if _has_tables(db):
                return
            db.execute("select pg_advisory_xact_lock(hashtext(current_schema() || ' meaning'))")
            if not _has_tables(db):
                _create_extension(db)
                db.execute(_TABLES)
                self._grant(db, "meaning_model")

    def claim(self, who: str) -> bool:
        """Claim the filling for a minute from now on; return False if another backfill has it."""
        with self._link.transaction(STATEMENT_SECONDS) as db:
            return db.execute(_CLAIM, {"who": who}).rowcount > 0

    def model(self) -> Model | None:
        """Return the model of the vectors; None if there are none."""
        with self._link.transaction(STATEMENT_SECONDS, reading=True) as db:
            return model_of(db)

    def name_model(self, model: Model) -> None:
        """Record the model that makes all vectors from now on, and make a table for them."""
        with self._link.transaction(STATEMENT_SECONDS) as db:
            db.execute(_NAME, (model.name, model.size, model.baseline))
            db.execute(_VECTORS.format(size=model.size))
            if model.size <= MAX_INDEXED_DIMENSIONS:
                db.execute(_GRAPH)
            self._grant(db, "meaning_vectors")

    def missing(self, most: int) -> list[UnembeddedFact]:
        """Return facts without a vector, the newest first."""
        with self._link.transaction(STATEMENT_SECONDS, reading=True) as db:
            rows = db.execute(_MISSING, (most,)).fetchall()
        return [UnembeddedFact(fact, decode_text(content)) for fact, content in rows]

    def keep(self, facts: Sequence[UnembeddedFact], vectors: Iterable[Vector]) -> None:
        """Store vectors; those of facts that were removed meanwhile are dropped."""
        numbers = [fact.queue_number for fact in facts]
        with self._link.transaction(STATEMENT_SECONDS) as db:
            db.execute(_KEEP, (numbers, [_literal(vector) for vector in vectors]))
            db.execute(_KEPT, (numbers,))

    def counts(self) -> tuple[int, int]:
        """Return how many facts have no vector yet, and how many have one."""
        with self._link.transaction(STATEMENT_SECONDS, reading=True) as db:
            missing = db.execute(_LACKING).fetchone() or (0,)
            kept = (model_of(db) and db.execute(_KEEPING).fetchone()) or (0,)
        return int(missing[0]), int(kept[0])

    def _grant(self, db: Connection, table: str) -> None:
        if self._where.reader:
            names = sql.Identifier(table), sql.Identifier(self._where.reader)
            db.execute(sql.SQL("grant select on {} to {}").format(*names))


def model_of(db: Connection) -> Model | None:
    """Return the model of the vectors, in the transaction that is open."""
    row = db.execute(_MODEL).fetchone() if _has_tables(db) else None
    return None if row is None else Model(*row)


class PostgresComparison:
    """Compares facts with a question, in the transaction that is open; see `MeaningComparison`.

    Args:
        scopes: the scopes whose facts are compared.
        vector: the vector of the question, of length one.
        model: the model of the vectors.
    """

    def __init__(self, db: Connection, scopes: Sequence[int], vector: Vector, model: Model) -> None:
        self._db = db
        self._asked = {"asked": _literal(vector), "scopes": list(scopes)}
        self._model = model

    def nearest(self, pool: SearchPool) -> Sequence[int]:
        """Return the rows of the `MAX_NEAREST` facts of a pool, nearest first."""
        given = {**self._asked, "answers": pool == "answers", "most": MAX_NEAREST}
        with self._db.pipeline():
            self._db.execute("select set_config('hnsw.iterative_scan', 'strict_order', true)")
            found = self._db.execute(_NEAREST, given)
        return [fact for (fact,) in found.fetchall()]

    def nearness(self, rows: Sequence[int]) -> Mapping[int, Near]:
        """Return how near the facts of these rows are, by row."""
        given = {**self._asked, "facts": list(rows), "most": MAX_COMPARED}
        found = self._db.execute(_COSINES, given).fetchall()
        if not found:
            return {}
        cosines = {fact: cosine for fact, cosine, *_ in found}
        return near_by_cosine(self._model.nearness, cosines, *found[0][2:])


def _has_tables(db: Connection) -> bool:
    row = db.execute(_TABLES_EXIST).fetchone()
    return bool(row and row[0])


def _create_extension(db: Connection) -> None:
    try:
        db.execute(_EXTENSION)
    except (
        errors.FeatureNotSupported,
        errors.UndefinedFile,
        errors.InsufficientPrivilege,
    ) as error:
        raise Unavailable(
            "Postgres: search by meaning needs the extension vector (pgvector 0.7 or later); "
            "install it on the server, and run as its owner: create extension vector; words alone "
            "answer until then"
        ) from error


def _literal(vector: Vector) -> str | None:
    """Return a vector as pgvector reads it; None if it is empty."""
    return f"[{','.join(np.char.mod('%.6g', vector))}]" if vector.size else None
