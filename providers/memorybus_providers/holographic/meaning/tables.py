"""Stores vectors in tables of the same file as the facts; the tables are made when first needed.

Triggers keep the vectors in step with the facts: they queue a new fact, delete the vector of a
removed one, and do both if a fact's text changes. SQLite may use a fact's row number again, but
never a number of the queue; so a vector that was made for one fact cannot become another's.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from memorybus_providers.embedding.embedder import Vector
from memorybus_providers.embedding.vectors import Model, UnembeddedFact

STORED_TYPE = np.float16  # how a number of a vector is stored; it is off by a thousandth at most

_TABLES_EXIST = "select 1 from sqlite_master where type = 'table' and name = 'meaning_model'"
_TABLES = """
create table meaning_model(
    id integer primary key check (id = 1), name text not null, size integer not null,
    mean real not null                        -- `Model.baseline`
);
create table meaning_missing(
    ticket integer primary key autoincrement, fact integer not null unique
);
create table meaning_vectors(
    id integer primary key, fact integer not null unique, scope integer not null,
    vector blob not null                      -- empty: the embedder refuses the text
);
create index meaning_vectors_by_scope on meaning_vectors(scope, id);
create table meaning_scopes(                  -- counts, so that a reader sees what has changed
    scope integer primary key, filled integer not null, removed integer not null
);
create trigger meaning_queued after insert on facts begin
    insert into meaning_missing(fact) values (new.id);
end;
create trigger meaning_removed after delete on facts begin
    delete from meaning_missing where fact = old.id;
    delete from meaning_vectors where fact = old.id;
end;
create trigger meaning_changed after update of content on facts begin
    delete from meaning_missing where fact = old.id;
    delete from meaning_vectors where fact = old.id;
    insert into meaning_missing(fact) values (new.id);
end;
create trigger meaning_counted after insert on meaning_vectors begin
    insert into meaning_scopes(scope, filled, removed) values (new.scope, 1, 0)
    on conflict do update set filled = filled + 1;
end;
create trigger meaning_discounted after delete on meaning_vectors begin
    update meaning_scopes set removed = removed + 1 where scope = old.scope;
end;
insert into meaning_missing(fact) select id from facts order by id;
"""
_MODEL = "select name, size, mean from meaning_model"
_MISSING = """
select ticket, facts.content from meaning_missing join facts on facts.id = fact
order by ticket desc limit ?
"""
_KEEP = """
insert into meaning_vectors(fact, scope, vector)
select fact, facts.scope, ? from meaning_missing join facts on facts.id = fact where ticket = ?
"""
_COUNTS = """
select (select count(*) from meaning_missing),
    (select coalesce(sum(filled - removed), 0) from meaning_scopes)
"""


class SqliteVectorTables:
    """Reads and writes the tables; belongs to one thread."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def prepare(self) -> None:
        """Make the tables if they are missing; all existing facts are queued."""
        if self._db.execute(_TABLES_EXIST).fetchone():
            return
        with self._writing():
            if not self._db.execute(_TABLES_EXIST).fetchone():
                for statement in _statements():
                    self._db.execute(statement)

    def model(self) -> Model | None:
        """Return the model of the vectors; None if there are none."""
        if not self._db.execute(_TABLES_EXIST).fetchone():
            return None
        row = self._db.execute(_MODEL).fetchone()
        return None if row is None else Model(*row)

    def name_model(self, model: Model) -> None:
        """Record the model that makes all vectors from now on."""
        with self._writing():
            self._db.execute(
                "insert or ignore into meaning_model(id, name, size, mean) values (1, ?, ?, ?)",
                (model.name, model.size, model.baseline),
            )

    def missing(self, most: int) -> list[UnembeddedFact]:
        """Return facts without a vector, the newest first."""
        return [UnembeddedFact(*row) for row in self._db.execute(_MISSING, (most,))]

    def keep(self, facts: Sequence[UnembeddedFact], vectors: Iterable[Vector]) -> None:
        """Store vectors; those of facts that were removed meanwhile are dropped.

        Args:
            facts: facts without a vector.
            vectors: one for each fact, of length one. A vector of size 0 means that the embedder
                refuses the text.
        """
        rows = [
            (vector.astype(STORED_TYPE).tobytes(), one.queue_number)
            for one, vector in zip(facts, vectors, strict=True)
        ]
        with self._writing():
            self._db.executemany(_KEEP, rows)
            self._db.executemany(
                "delete from meaning_missing where ticket = ?",
                [(fact.queue_number,) for fact in facts],
            )

    def counts(self) -> tuple[int, int]:
        """Return how many facts have no vector yet, and how many have one."""
        missing, kept = self._db.execute(_COUNTS).fetchone()
        return int(missing), int(kept)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._db.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._db.execute("rollback")
            raise
        self._db.execute("commit")


def _statements() -> Iterator[str]:
    """Yield the statements that make the tables; `executescript` would commit the transaction."""
    statement = ""
    for line in _TABLES.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
