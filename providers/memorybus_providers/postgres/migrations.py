"""Makes the tables in numbered steps; the first instance that opens applies each step once.

The instances of all workers may open at the same time, so an advisory lock lets them take turns. A
step that was released is never changed. Every index keeps the rows of one scope together, so a
search in one scope never reads another's rows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from memorybus.errors import Unavailable
from psycopg import sql

from memorybus_providers.postgres.link import Connection, connect, translating_errors
from memorybus_providers.postgres.options import Where

_TABLES = """
create table lanes(lane text primary key, epoch bigint not null, entry text not null,
    n bigint not null);
create table applied(                          -- a row of ids for each batch
    lane text not null, seq bigint generated always as identity, ids bytea not null,
    primary key(lane, seq)
);
create table erasures(number bigint not null);  -- how many there were, in one row
insert into erasures values (0);
create table scopes(
    id bigint generated always as identity primary key,
    key text not null unique,                  -- digest of the three: they may be of any length
    agent text not null, person text not null, workspace text not null
);
create table sessions(
    id bigint generated always as identity primary key,
    scope bigint not null,
    key text not null unique,                  -- digest of scope, name and root
    name text not null, root text not null,
    mark text not null,                        -- stands for the name, see ranking.facts
    said integer not null default 0            -- how many there are
);
create index sessions_by_scope on sessions(scope, id);
create sequence fact_ids;
create table facts(
    id bigint primary key,
    scope bigint not null, session bigint not null,
    seq integer,                               -- place among the session's utterances, from 0
    name text not null,                        -- see ranking.facts
    event_id bytea not null,
    at bigint not null,                        -- milliseconds
    kind text not null, speaker text not null, category text not null, tags text not null,
    content text not null,
    retrieval_count integer not null default 0
);
create unique index facts_by_place on facts(session, seq) where seq is not null;
create unique index facts_once on facts(scope, kind, md5(content)) where seq is null;
create index facts_by_name on facts(scope, name);
create table postings(                         -- which facts hold a token of a scope
    scope bigint not null, token text collate "C" not null, fact bigint not null,
    primary key(scope, token, fact)
);
create table sources(                          -- of a note: the events that said it
    session bigint not null, event_id bytea not null,
    fact bigint not null references facts on delete cascade,
    scope bigint not null, at bigint not null, category text not null, tags text not null,
    primary key(session, event_id, fact)
);
create index sources_by_fact on sources(fact);
create table speakers(                         -- one row for each word of a name
    scope bigint not null, word text not null, name text not null,
    primary key(scope, word, name)
);
create table named(                            -- names in kept facts
    scope bigint not null, word text not null,
    fact bigint not null references facts on delete cascade,
    primary key(scope, word, fact)
);
create index named_by_fact on named(fact);
create table judgements(
    scope bigint not null, fact text not null,  -- a fact's name; it need not be there yet
    helpful integer not null, unhelpful integer not null,
    primary key(scope, fact)
);
create table corrections(
    scope bigint not null, event_id bytea not null, session bigint not null, at bigint not null,
    fact text not null,                        -- name of the fact that is put right, or empty
    old text not null,                         -- what it says, or empty
    note text not null,                        -- name of the note that holds in its place
    primary key(scope, event_id)
);
create table former(                           -- entries of the stores as they were
    id bigint generated always as identity primary key,
    scope bigint not null, session bigint not null, name text not null, event_id bytea not null,
    at bigint not null, kind text not null, content text not null,
    until bigint not null,                     -- when it was replaced or removed, milliseconds
    successor text not null                    -- name of what replaced it; empty if removed
);
create index former_by_scope on former(scope, until);
create table tool_results(
    seq bigint generated always as identity primary key,
    event_id bytea not null unique, result text not null
);
"""

_BY_SCOPE: Final = (
    "sessions", "facts", "postings", "sources", "speakers", "named", "judgements", "corrections",
    "former",
)  # fmt: skip
_ASKED = """
create function asked() returns bigint[] language sql stable as
$$ select string_to_array(current_setting('memorybus.scopes', true), ',')::bigint[] $$;
"""
# The inner `select` makes Postgres call `asked` once for each statement, and not for each row.
_WALL = """
alter table {table} enable row level security;
create policy asked on {table} for select using (scope = any((select asked())::bigint[]));
"""
_WALLS = _ASKED + "".join(_WALL.format(table=table) for table in _BY_SCOPE)
# This index finds the newest facts, and what was said at the time that a question names.
_BY_TIME = "create index facts_by_time on facts(scope, at, id);"

# Postings of long answers have the negative number of their scope.
_POOLS = """
alter table sessions add column answers integer not null default 0;
drop policy asked on postings;
create policy asked on postings for select using (abs(scope) = any((select asked())::bigint[]));
"""

_DERIVED = """
create table derived(                          -- conclusions, see derivations.py
    scope bigint not null, event_id text not null, session bigint not null,
    at bigint not null, kind text not null,
    content text not null,                     -- empty once a source was retracted
    cause text not null, deriver text not null,
    supersedes text not null,                  -- ids of earlier ones, separated by spaces
    primary key(scope, event_id)
);
create index derived_by_cause on derived(scope, cause);
create table derived_sources(                  -- the events that a conclusion came from
    scope bigint not null, source text not null, derived text not null,
    primary key(scope, source, derived)
);
create table retracted(                        -- events from which nothing may be concluded
    scope bigint not null, event_id text not null, primary key(scope, event_id)
);
create table due(                              -- sessions that wait for a deriver
    scope bigint not null, cause text not null, session bigint not null, at bigint not null,
    primary key(scope, cause)
);
"""
_DERIVED += _WALL.format(table="derived")

_WAITING = """
create table waiting(                          -- sessions that wait for a deriver
    scope bigint not null, cause text not null, deriver text not null,
    session bigint not null, at bigint not null, primary key(scope, cause, deriver)
);
insert into waiting select scope, cause, 'extractive', session, at from due;
drop table due;
create index derived_sources_of on derived_sources(scope, derived);
"""
_WAITING += _WALL.format(table="derived_sources")

_CURATIONS = f"""
create table curations(
    scope bigint not null, fact text not null,  -- a fact's name; it need not be there yet
    state text not null default 'active',
    since bigint not null default 0, event_id bytea not null default '',
    successor text not null default '',        -- name of what stands for it; empty for none
    forgotten bigint not null default 0,       -- what was kept until then is forgotten
    used bigint not null default 0,            -- milliseconds, to the day
    primary key(scope, fact)
);
create index curations_archived on curations(scope) where state = 'archived';
create index curations_forgotten on curations(scope, fact) where forgotten > 0;
{_WALL.format(table="curations")}
"""

# Of all tenants only those of an agent or a person. A hash takes names of any length.
_BY_OWNER = """
create index scopes_by_agent on scopes using hash (agent);
create index scopes_by_person on scopes using hash (person);
"""

MIGRATIONS: Final[tuple[str, ...]] = (
    _TABLES,
    _WALLS,
    _BY_TIME,
    _POOLS,
    _DERIVED,
    _CURATIONS,
    _BY_OWNER,
    _WAITING,
)
"""The steps; the first one has the number 1."""

_READ: Final = (*_BY_SCOPE, "derived", "curations", "derived_sources")
"""The tables that the readers' role may read."""

_STEP_SECONDS = 60.0
"""Seconds that one statement may take; another instance's steps are waited for as long."""


def migrate(where: Where) -> None:
    """Apply the steps that are missing in the tables, if any.

    Raises:
        Unavailable: the server is away or refuses a step, or a newer release wrote the tables.
    """
    with translating_errors(), connect(where) as db:
        if _last_step(db, where.schema) != len(MIGRATIONS):
            with _exclusively(db, where.schema):
                _migrate(db, where.schema)
        if where.reader and not _may_read(db, where):
            with _exclusively(db, where.schema):
                _grant(db, where)


@contextmanager
def _exclusively(db: Connection, schema: str) -> Iterator[None]:
    """Open a transaction while no other instance changes the schema."""
    with db.transaction():
        db.execute(sql.SQL("set local statement_timeout = {}").format(round(_STEP_SECONDS * 1000)))
        name = f"memorybus migrations {schema}"
        db.execute("select pg_advisory_xact_lock(hashtext(%s))", (name,))
        yield


def _may_read(db: Connection, where: Where) -> bool:
    given = (where.reader, f"{where.schema}.{_READ[-1]}")
    row = db.execute("select has_table_privilege(%s, %s, 'select')", given).fetchone()
    return bool(row and row[0])


def _grant(db: Connection, where: Where) -> None:
    """Let the readers' role read the tables; policies show it only the scopes of a transaction."""
    schema, role = sql.Identifier(where.schema), sql.Identifier(where.reader)
    db.execute(sql.SQL("grant usage on schema {} to {}").format(schema, role))
    for table in _READ:
        name = sql.Identifier(where.schema, table)
        db.execute(sql.SQL("grant select on {} to {}").format(name, role))


def _migrate(db: Connection, schema: str) -> None:
    known = _last_step(db, schema)
    if known > len(MIGRATIONS):
        raise Unavailable(
            f"the schema {schema!r} was written by a newer release (step {known}, known "
            f"{len(MIGRATIONS)}); upgrade memorybus"
        )
    name = sql.Identifier(schema)
    db.execute(sql.SQL("create schema if not exists {}").format(name))
    db.execute(sql.SQL("set local search_path to {}").format(name))
    db.execute("create table if not exists migrations(number integer primary key)")
    for number, step in enumerate(MIGRATIONS[known:], known + 1):
        db.execute(step)
        db.execute("insert into migrations values (%s)", (number,))


def _last_step(db: Connection, schema: str) -> int:
    """Return the number of the last step that was applied; 0 if there are no tables."""
    there = db.execute(
        "select 1 from information_schema.tables"
        " where table_schema = %s and table_name = 'migrations'",
        (schema,),
    ).fetchone()
    if there is None:
        return 0
    query = sql.SQL("select coalesce(max(number), 0) from {}.migrations")
    row = db.execute(query.format(sql.Identifier(schema))).fetchone()
    return int(row[0]) if row else 0
