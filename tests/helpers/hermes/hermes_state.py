"""A `state.db` as Hermes 0.19.0 writes it, for tests and benchmarks.

The statements are those of its ``hermes_state.py`` (`SCHEMA_SQL`, version 22), cut down to the
four tables that are read; ``tests/hermes/test_state_db.py`` compares them with the real one.
"""

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

VERSION = 22
SCHEMA = """
create table schema_version(version integer not null);
create table sessions(
    id text primary key, source text not null, user_id text, session_key text, chat_id text,
    chat_type text, thread_id text, display_name text, origin_json text,
    expiry_finalized integer default 0, model text, model_config text, system_prompt text,
    parent_session_id text, started_at real not null, ended_at real, end_reason text,
    message_count integer default 0, tool_call_count integer default 0, cwd text, title text,
    profile_name text,
    rewind_count integer not null default 0, archived integer not null default 0,
    foreign key (parent_session_id) references sessions(id));
create table messages(
    id integer primary key autoincrement, session_id text not null references sessions(id),
    role text not null, content text, tool_call_id text, tool_calls text, tool_name text,
    effect_disposition text, timestamp real not null, token_count integer, finish_reason text,
    reasoning text, reasoning_content text, reasoning_details text, codex_reasoning_items text,
    codex_message_items text, platform_message_id text, observed integer default 0,
    active integer not null default 1, compacted integer not null default 0, api_content text);
create table session_model_usage(
    session_id text not null references sessions(id) on delete cascade, model text not null,
    billing_provider text not null default '', billing_base_url text not null default '',
    billing_mode text not null default '', task text not null default '',
    api_call_count integer not null default 0, input_tokens integer not null default 0,
    output_tokens integer not null default 0, cache_read_tokens integer not null default 0,
    cache_write_tokens integer not null default 0, reasoning_tokens integer not null default 0,
    estimated_cost_usd real not null default 0, actual_cost_usd real not null default 0,
    cost_status text, cost_source text, first_seen real, last_seen real,
    primary key (session_id, model, billing_provider, billing_base_url, billing_mode, task));
create index idx_sessions_started on sessions(started_at desc);
create index idx_messages_session on messages(session_id, timestamp);
create index idx_messages_session_active on messages(session_id, active, timestamp);
"""
SUMMARY = (
    "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into the summary below."
)
BELOW = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
PRIOR = "[PRIOR CONTEXT — for reference only; not a new message]"
LONG_AGO = 1_700_000_000.0
"""A time (seconds) long before any test runs."""


class HermesState:
    """Writes sessions and messages as Hermes does; every message is a second after the last."""

    def __init__(self, home: Path, *, at: float = LONG_AGO) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.path = home / "state.db"
        self.now = at
        self.db = sqlite3.connect(self.path, isolation_level=None)
        self.db.execute("pragma journal_mode = wal")
        self.db.executescript(SCHEMA)
        self.db.execute("insert into schema_version values (?)", (VERSION,))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.db.close()

    def session(
        self,
        session_id: str,
        *,
        source: str = "cli",
        user: str | None = None,
        parent: str | None = None,
        config: dict[str, Any] | None = None,
        title: str | None = None,
        **more: str,
    ) -> None:
        """Create a session; `more` are other columns."""
        self.now += 1
        self.db.execute(
            "insert into sessions(id, source, user_id, parent_session_id, model, model_config, "
            "started_at, title) values (?, ?, ?, ?, 'm', ?, ?, ?)",
            (session_id, source, user, parent, json.dumps(config or {}), self.now, title),
        )
        for name, value in more.items():
            self.db.execute(f"update sessions set {name} = ? where id = ?", (value, session_id))

    def end(self, session_id: str, reason: str) -> None:
        """Close a session's row."""
        self.now += 1
        self.db.execute(
            "update sessions set ended_at = ?, end_reason = ? where id = ?",
            (self.now, reason, session_id),
        )

    def say(self, session_id: str, role: str, content: Any, **more: Any) -> int:
        """Append a message and return its number."""
        self.now += 1
        stored = content if isinstance(content, str | None) else "\x00json:" + json.dumps(content)
        names = ["session_id", "role", "content", "timestamp", *more]
        values = [session_id, role, stored, self.now, *more.values()]
        holes = ", ".join("?" * len(names))
        found = self.db.execute(
            f"insert into messages({', '.join(names)}) values ({holes})",
            values,
        )
        return int(found.lastrowid or 0)

    def turn(self, session_id: str, user: Any, answer: str) -> None:
        """Append a turn without tools."""
        self.say(session_id, "user", user)
        self.say(session_id, "assistant", answer)

    def tool_turn(self, session_id: str, user: str, answer: str) -> None:
        """Append a turn in which a tool was called."""
        call = [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]
        self.say(session_id, "user", user)
        self.say(session_id, "assistant", "Let me look.", tool_calls=json.dumps(call))
        self.say(session_id, "tool", "a.txt", tool_call_id="c1", tool_name="ls")
        self.say(session_id, "assistant", answer)

    def called(
        self,
        session_id: str,
        tokens_in: int,
        tokens_out: int,
        *,
        model: str = "m",
        cached: int = 0,
        task: str = "",
        cost: float | None = None,
        actual: float = 0.0,
    ) -> None:
        """Count a call of a model, as Hermes does after each (`_record_model_usage`).

        Args:
            cost: what Hermes estimates; None if it does not know the model's prices.
            actual: what the service billed, if it states that.
        """
        self.now += 1
        self.db.execute(
            "insert into session_model_usage(session_id, model, task, input_tokens, output_tokens, "
            "cache_read_tokens, last_seen, api_call_count, estimated_cost_usd, actual_cost_usd, "
            "cost_status) values (?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?) "
            "on conflict(session_id, model, billing_provider, billing_base_url, billing_mode, "
            "task) "
            "do update set input_tokens = input_tokens + excluded.input_tokens, "
            "output_tokens = output_tokens + excluded.output_tokens, "
            "cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens, "
            "api_call_count = api_call_count + 1, "
            "estimated_cost_usd = estimated_cost_usd + excluded.estimated_cost_usd, "
            "actual_cost_usd = actual_cost_usd + excluded.actual_cost_usd, "
            "cost_status = excluded.cost_status, last_seen = excluded.last_seen",
            (
                *(session_id, model, task, tokens_in, tokens_out, cached, self.now),
                *(cost or 0.0, actual, "unknown" if cost is None else "estimated"),
            ),
        )

    def compact(self, session_id: str, kept: Iterable[tuple[str, str]]) -> None:
        """Compress in place (`archive_and_compact`): all rows archived, some stored anew."""
        self.db.execute(
            "update messages set active = 0, compacted = 1 where session_id = ? and active = 1",
            (session_id,),
        )
        self.store(session_id, kept)

    def store(self, session_id: str, kept: Iterable[tuple[str, str]]) -> None:
        """Store messages anew, as a compression or a branch does."""
        for role, content in kept:
            self.say(session_id, role, content)

    def undo(self, session_id: str, since: int) -> None:
        """Take back every message from a number on (`rewind_to_message`)."""
        self.db.execute(
            "update messages set active = 0 where session_id = ? and id >= ? and active = 1",
            (session_id, since),
        )


def big(home: Path, messages: int, *, per_session: int = 200) -> None:
    """Write so many messages of some 300 bytes, two to a turn, in sessions of `per_session`."""
    with HermesState(home) as state:
        state.db.execute("begin")
        for number in range(0, messages, 2):
            session_id = f"s{number // per_session:05d}"
            if number % per_session == 0:
                state.session(session_id)
            words = f"message {number} about the ferry and its timetable, which changes " * 4
            state.turn(session_id, f"Question: {words}", f"Answer: {words}")
        state.db.execute("commit")
