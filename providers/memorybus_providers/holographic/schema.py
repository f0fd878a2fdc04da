"""Defines the tables of the holographic provider's SQLite file, and opens it.

With write-ahead logging readers continue while a lane writes, so an instance that only recalls
never waits for a write lock. The checkpoint and the ledger of event ids are in the same file (G4).

Each token in the full-text index begins with its scope, so a search in one scope never reads
another's tokens. A Python function makes the tokens, and the triggers and the view call it; so
other programs can read the tables, but they cannot write facts.
"""

import sqlite3
from collections.abc import Mapping
from pathlib import Path

from memorybus import private
from memorybus.clock import Clock
from memorybus.errors import Unavailable

from memorybus_providers import ledger
from memorybus_providers.language.indexed_tokens import indexed_tokens
from memorybus_providers.ranking.facts import SearchPool, pool_of

SCHEMA_VERSION = 12
_OLDEST_EXTENDED = 7
"""Files of this version, and later ones, only lack tables and indexes, which are made when such a
file is opened."""

BUSY_SECONDS = 5.0

MERGE_INDEX = "insert into facts_fts(facts_fts, rank) values ('merge', ?)"
"""Merges parts of the full-text index, at most as many pages as its argument says.

A negative number begins to merge all parts into one; positive numbers continue.
https://www.sqlite.org/fts5.html#the_merge_command"""

_RETRY_SECONDS = 0.02

_SCHEMA = """
begin immediate;
create table if not exists scopes(
    id integer primary key,
    agent text not null, user text not null, workspace text not null,
    facts integer not null default 0,         -- how many it has of the pool of talk
    answers integer not null default 0,       -- how many of the pool of answers
    unique(agent, user, workspace)
);
create index if not exists scopes_by_user on scopes(user);
create table if not exists sessions(
    id integer primary key,
    scope integer not null references scopes, name text not null, root text not null,
    mark text not null,                       -- stands for the name, see ranking/facts.py
    unique(scope, name, root)                 -- another root is another order key
);
create index if not exists sessions_by_root on sessions(scope, root);
create index if not exists sessions_by_mark on sessions(scope, mark);
create table if not exists facts(
    id integer primary key,
    scope integer not null references scopes,
    session integer not null references sessions,
    seq integer,                              -- place among the session's utterances, from 0
    name text not null,                       -- see ranking/facts.py
    event_id blob not null,
    at integer not null,                      -- milliseconds
    kind text not null,
    speaker text not null,
    category text not null default '',
    tags text not null default '',
    retrieval_count integer not null default 0,
    content text not null
);
create unique index if not exists facts_by_place on facts(session, seq) where seq is not null;
create index if not exists facts_kept on facts(scope, kind) where seq is null;
create table if not exists sources(           -- of a note: the events that said it
    session integer not null references sessions, event_id blob not null,
    fact integer not null, at integer not null,
    category text not null, tags text not null,
    primary key(session, event_id, fact)
) without rowid;
create index if not exists sources_by_fact on sources(fact);
-- What the index holds of each fact; `terms` is `index_terms` of this module.
create view if not exists indexed_facts as
    select id, terms(scope, kind, tags, content) as terms from facts;
create virtual table if not exists facts_fts using fts5(
    terms, content = 'indexed_facts', content_rowid = 'id', detail = none, columnsize = 0,
    tokenize = "ascii tokenchars '_./!'"
);
-- FTS5 merges by itself after each 64 pages, all that is due at once: utterances.py merges instead.
insert into facts_fts(facts_fts, rank)
    values ('pgsz', 4000), ('automerge', 0), ('usermerge', 8), ('crisismerge', 64);
create virtual table if not exists vocabulary using fts5vocab(facts_fts, 'row');
-- What was said comes in thousands; utterances.py puts it into the index in one statement.
drop trigger if exists facts_added;           -- of files of version 11, which counted otherwise
drop trigger if exists facts_removed;
create trigger facts_added after insert on facts when new.seq is null begin
    insert into facts_fts(rowid, terms)
        values (new.id, terms(new.scope, new.kind, new.tags, new.content));
    update scopes set facts = facts + (new.kind <> 'fact'), answers = answers + (new.kind = 'fact')
        where id = new.scope;
end;
create trigger facts_removed after delete on facts begin
    insert into facts_fts(facts_fts, rowid, terms)
        values ('delete', old.id, terms(old.scope, old.kind, old.tags, old.content));
    update scopes set facts = facts - (old.kind not in ('answer', 'fact')),
        answers = answers - (old.kind in ('answer', 'fact')) where id = old.scope;
    delete from fact_entities where fact = old.id;
    delete from sources where fact = old.id;
end;
create trigger if not exists facts_changed after update of content, tags on facts
when old.content is not new.content or old.tags is not new.tags begin
    insert into facts_fts(facts_fts, rowid, terms)
        values ('delete', old.id, terms(old.scope, old.kind, old.tags, old.content));
    insert into facts_fts(rowid, terms)
        values (new.id, terms(new.scope, new.kind, new.tags, new.content));
end;
create table if not exists entities(
    id integer primary key,
    scope integer not null references scopes,
    kind text not null,                       -- speaker: one row per word of the name; or named
    word text not null,                       -- folded, what a question is compared with
    name text not null,                       -- as it was written
    unique(scope, kind, word, name)
);
create table if not exists fact_entities(
    entity integer not null references entities, fact integer not null,
    primary key(entity, fact)
) without rowid;
create index if not exists fact_entities_by_fact on fact_entities(fact);
create table if not exists judgements(
    scope integer not null references scopes,
    fact text not null,                       -- its name; it need not be there yet
    helpful integer not null, unhelpful integer not null,
    primary key(scope, fact)
) without rowid;
create table if not exists curations(         -- see curations.py
    scope integer not null references scopes,
    fact text not null,                       -- its name; it need not be there yet
    state text not null default 'active',
    since integer not null default 0, event_id blob not null default x'',
    successor text not null default '',       -- name of what stands for it, or empty
    forgotten integer not null default 0,     -- what was kept until then is forgotten, milliseconds
    used integer not null default 0,          -- milliseconds, to the day
    primary key(scope, fact)
) without rowid;
create index if not exists curations_archived on curations(scope) where state = 'archived';
create index if not exists curations_forgotten on curations(scope, fact) where forgotten > 0;
create index if not exists facts_by_name on facts(scope, name) where seq is null;
create table if not exists corrections(       -- see corrections.py
    scope integer not null references scopes,
    event_id blob not null,
    session integer not null references sessions,
    at integer not null,
    fact text not null,                       -- name of the fact that is put right, or empty
    old text not null,                        -- what it says, or empty
    note text not null,                       -- name of the note that holds in its place
    primary key(scope, event_id)
) without rowid;
create table if not exists former(            -- entries of the stores as they were, see former.py
    id integer primary key,
    scope integer not null references scopes, session integer not null references sessions,
    name text not null, event_id blob not null, at integer not null,
    kind text not null, content text not null,
    until integer not null,                   -- when it was replaced or removed, milliseconds
    successor text not null                   -- name of what replaced it; empty if it was removed
);
create index if not exists former_by_scope on former(scope, successor);
create table if not exists derived(           -- conclusions, see derivations.py
    scope integer not null references scopes,
    event_id text not null,
    session integer not null references sessions,
    at integer not null, kind text not null,
    content text not null,                    -- empty once a source was retracted
    cause text not null,
    deriver text not null,
    supersedes text not null,                 -- ids of earlier ones, separated by spaces
    primary key(scope, event_id)
) without rowid;
create index if not exists derived_by_cause on derived(scope, cause);
create table if not exists derived_sources(   -- the events that a conclusion came from
    scope integer not null references scopes,
    source text not null, derived text not null,
    primary key(scope, source, derived)
) without rowid;
create table if not exists retracted(         -- events from which nothing may be concluded any more
    scope integer not null references scopes, event_id text not null,
    primary key(scope, event_id)
) without rowid;
create index if not exists derived_sources_of on derived_sources(scope, derived);
create table if not exists due(               -- of files of version 10: for the extractive deriver
    scope integer not null, cause text not null, session integer not null, at integer not null
);
create table if not exists waiting(           -- sessions that wait for a deriver
    scope integer not null references scopes, cause text not null, deriver text not null,
    session integer not null references sessions, at integer not null,
    primary key(scope, cause, deriver)
) without rowid;
insert or ignore into waiting select scope, cause, 'extractive', session, at from due;
drop table due;
create table if not exists tool_results(
    seq integer primary key, event_id blob not null unique, result text not null
);
"""
ANCHOR_EVERY = 16
"""One utterance in this many is an anchor: it is found by its time, and the utterances after it by
their place in the session.

An index of the times of all utterances would make writes a third slower if many people take turns.
"""

_BY_TIME = f"""
create index if not exists facts_by_time on facts(scope, at) where seq % {ANCHOR_EVERY} = 0;
"""

# The version is set in the same transaction as the tables, so it proves that all of them exist.
_DONE = f"""
pragma user_version = {SCHEMA_VERSION};
commit;
"""


def connect(path: Path, clock: Clock) -> sqlite3.Connection:
    """Open the database and create it if it is missing; safe while others have it open.

    Raises:
        Unavailable: the file is not a database, is damaged or of another release, or cannot be
            opened.
    """
    try:
        private.directory(path.parent)
        private.file(path)
        db = sqlite3.connect(
            path, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False
        )
    except (OSError, sqlite3.Error) as error:
        raise Unavailable(f"{path}: cannot be opened: {error}") from error
    try:
        _prepare(db, path, clock)
    except sqlite3.OperationalError as error:
        db.close()
        raise Unavailable(f"{path}: cannot be opened: {error}") from error
    except sqlite3.DatabaseError as error:
        db.close()
        raise damaged_error(path, error) from error
    except BaseException:
        db.close()
        raise
    return db


def scope_prefix(scope: int, pool: SearchPool = "talk") -> str:
    """Return the prefix that the tokens of a scope and pool have in the index."""
    return f"{scope:x}{'.' if pool == 'answers' else '_'}"


def index_terms(scope: int, kind: str, tags: str, content: str) -> str:
    """Return the terms of a fact in the index: its tokens, each once, separated by spaces."""
    begins = f" {scope_prefix(scope, pool_of(kind))}"
    kept = indexed_tokens(tags, content)
    return begins + begins.join(kept) if kept else ""


def count_facts(db: sqlite3.Connection, added: Mapping[tuple[int, SearchPool], int]) -> None:
    """Add to the counts of scopes; `added` has how many facts, by the scope's row and the pool."""
    counts = [
        (facts * (pool == "talk"), facts * (pool == "answers"), scope)
        for (scope, pool), facts in added.items()
    ]
    db.executemany(
        "update scopes set facts = facts + ?, answers = answers + ? where id = ?", counts
    )


def damaged_error(path: Path, error: sqlite3.DatabaseError) -> Unavailable:
    """Return the error for a damaged database file; no event is parked because of it (G6)."""
    return Unavailable(
        f"{path}: {error}. Move the file away (or restore a backup), then replay the provider: "
        "it is rebuilt from history"
    )


def _prepare(db: sqlite3.Connection, path: Path, clock: Clock) -> None:
    version = db.execute("pragma user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise Unavailable(
            f"{path}: written by a newer release (schema {version}, known {SCHEMA_VERSION}); "
            "upgrade memorybus"
        )
    if 0 < version < _OLDEST_EXTENDED:
        raise Unavailable(
            f"{path}: written by an older release (schema {version}, needed {_OLDEST_EXTENDED}). "
            "Move the file away: a worker then fills a new one from history"
        )
    db.create_function("terms", 4, index_terms, deterministic=True)
    _use_wal(db, clock)
    db.execute("pragma synchronous = normal")
    db.execute("pragma temp_store = memory")
    db.execute("pragma secure_delete = on")  # what is removed does not stay in the file
    if version < SCHEMA_VERSION:
        ledger.migrate(db)
        db.executescript(_SCHEMA + _BY_TIME + _DONE)


def _use_wal(db: sqlite3.Connection, clock: Clock) -> None:
    """Switch to write-ahead logging; wait here, since SQLite does not, if another one switches."""
    give_up = clock.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.execute("pragma journal_mode = wal")
        except sqlite3.OperationalError as error:
            if not ledger.is_locked(error) or clock.monotonic() > give_up:
                raise
            clock.sleep(_RETRY_SECONDS)
        else:
            return
