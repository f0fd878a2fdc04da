"""Reads sessions and messages from Hermes's ``state.db``, a few at a time; never writes.

The schema is that of Hermes 0.19.0 (``hermes_state.py``, version 22), with the columns that 0.22
added where they exist. Every read is short, so that a running Hermes can always checkpoint its
write-ahead log. Every read returns one page, so that memory use stays flat whatever the size of the
file.

The columns of messages: ``id`` is the order of insertion (timestamps may go back). `carried` says
what ``active`` and ``compacted`` mean. ``observed`` marks what somebody in a group said to others,
not to the agent.
"""

import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import msgspec
from memorybus.concurrency.forking import sqlite_guard
from memorybus.errors import MemoryBusError
from memorybus.events import LATEST, ModelUsage

from memorybus_hermes.transcripts.carried import Carried, RowMark, follow
from memorybus_hermes.transcripts.scaffolding import spoken_text

WRITTEN_FOR = 22
"""The schema's version in Hermes 0.19.0; newer ones are read as long as they have the columns."""

HOOK_WAIT_SECONDS = 0.1
"""Seconds for which a hook waits while Hermes writes, which without WAL locks readers out (G9)."""

_PAGE = 64
_MARK_PAGE = 4_096
_SESSION_COLUMNS = (
    "id", "source", "user_id", "model", "model_config", "parent_session_id", "started_at",
    "ended_at", "end_reason", "title", "session_key", "chat_id", "chat_type", "thread_id", "cwd",
)  # fmt: skip
_DETAILS = ("gateway_session_key", "chat_id", "chat_type", "thread_id", "cwd")
"""The names under which Hermes passes the last columns to `initialize`."""
_MESSAGE_COLUMNS = (
    "id", "session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name",
    "timestamp", "observed", "active", "compacted",
)  # fmt: skip
_SUMMARY = "case when content like '[CONTEXT %' then content end"
_MARK_COLUMNS = ("id", "role", "timestamp", "tool_call_id", "active", "compacted", _SUMMARY)
_NEWER_COLUMNS = ("message_uid", "absorbed_message_uids", "display_kind", "display_metadata")
"""Columns that not every release has."""

_SWITCHES = frozenset(("model_switch", "personality_switch"))
"""Kinds of notes that Hermes writes under the role ``user`` and replaces by newer ones."""

_QUEUED = '"_queued_prompt"'
"""Marks a prompt that came during a turn; Hermes stores it anew when its own turn begins."""

_SESSIONS = f"select {', '.join(_SESSION_COLUMNS)} from sessions "  # noqa: S608  names of our own
_MESSAGES = f"select {', '.join(_MESSAGE_COLUMNS)} from messages "  # noqa: S608  names of our own
_COUNTED = """
with used as (
    select model, last_seen, input_tokens + cache_read_tokens + cache_write_tokens as tokens_in,
        output_tokens as tokens_out,
        case when actual_cost_usd > 0 then actual_cost_usd else estimated_cost_usd end as cost,
        case when actual_cost_usd > 0 or cost_status <> 'unknown' then 0 else api_call_count end
            as unpriced
    from session_model_usage where session_id = ?1 and task = '')
select coalesce((select nullif(model, 'unknown') from used order by last_seen desc limit 1), model),
    (select sum(tokens_in) from used), (select sum(tokens_out) from used), tool_call_count,
    (select sum(unpriced) from used), (select sum(cost) from used)
from sessions where id = ?1
"""
"""Counts the main loop's calls of models; those for titles and summaries have a `task`."""

_USAGE_COLUMNS = frozenset((
    "model", "task", "api_call_count", "input_tokens", "cache_read_tokens", "cache_write_tokens",
    "output_tokens", "actual_cost_usd", "estimated_cost_usd", "cost_status", "cost_source",
))  # fmt: skip
"""The columns of `_USED`; without them a release has counted nothing that can be read."""

_USED = """
select case when model = 'unknown' then '' else model end, task, sum(api_call_count),
    sum(input_tokens + cache_read_tokens + cache_write_tokens), sum(output_tokens),
    sum(case when actual_cost_usd > 0 then actual_cost_usd
        when cost_status <> 'unknown' or estimated_cost_usd > 0 then estimated_cost_usd end)
from session_model_usage where session_id = ? group by 1, 2 order by 1, 2
"""

_JSON = "\x00json:"  # the prefix of a content that is a list of parts


class StateDbError(MemoryBusError):
    """A ``state.db`` is missing, is damaged, or has a schema that cannot be read."""


class StoredSession(msgspec.Struct, frozen=True):
    """One row of ``sessions``; times are milliseconds since the Unix epoch, 0 if unknown."""

    id: str
    source: str
    user: str
    model: str
    parent: str  # the id of the session that it came from; "" for none
    started_at: int
    ended_at: int
    end_reason: str
    title: str
    branched: bool  # whether a `/branch` created it
    delegated: bool
    details: dict[str, str]  # the other values that Hermes passes to `initialize` for it


class StoredMessage(msgspec.Struct, frozen=True):
    """One message; `content` is text or a list of parts, `tool_calls` is the model's own list.

    Attributes:
        taken_back: whether the user took it back; `StateDb.standing` does not look for that.
    """

    id: int
    role: str
    content: Any
    at: int  # when it was written, milliseconds since the Unix epoch
    tool_calls: Any = None
    tool_call_id: str = ""
    tool_name: str = ""
    taken_back: bool = False
    observed: bool = False  # whether it was said to somebody else


class SessionUsage(msgspec.Struct, frozen=True):
    """What Hermes has counted for a session so far."""

    model: str = ""  # the model that was called last; "" if none was called
    tokens_in: int = 0  # prompt tokens, including cached ones
    tokens_out: int = 0
    tool_calls: int = 0
    unpriced: int = 0  # calls of models whose cost Hermes does not know
    cost: float = 0.0  # US dollars of the other calls, as Hermes knows or estimates them


def read_usage(path: Path, session_id: str) -> SessionUsage | None:
    """Return what Hermes has counted for a session; a lock is waited for a moment only (G9).

    Returns:
        Zeros for a session that is not stored yet; None if the file cannot be read now.
    """
    try:
        with sqlite_guard(), closing(_open(path, timeout=HOOK_WAIT_SECONDS)) as db:
            found = db.execute(_COUNTED, (session_id,)).fetchone()
    except (sqlite3.Error, ValueError):  # SQLite cannot read the file, or take the id
        return None
    if found is None:
        return SessionUsage()
    model, *counts, cost = found
    usage = SessionUsage(
        str(model or ""), *(count if isinstance(count, int) else 0 for count in counts)
    )
    return msgspec.structs.replace(usage, cost=cost if isinstance(cost, float) else 0.0)


def read_session(path: Path, session_id: str, wait: float) -> StoredSession | None:
    """Return a stored session; None if there is none, or if the file cannot be read so soon.

    Args:
        path: the ``state.db``.
        wait: how long to wait for a lock at most, seconds.
    """
    try:
        with StateDb(path, wait=wait) as db:
            return db.session(session_id)
    except StateDbError:
        return None


def _usage(model: Any, task: Any, *numbers: Any) -> ModelUsage:
    *counts, cost = numbers
    calls, tokens_in, tokens_out = (
        max(0, count) if isinstance(count, int) else 0 for count in counts
    )
    amount = float(cost) if isinstance(cost, int | float) and cost >= 0 else -1.0
    return ModelUsage(str(model), str(task), calls, tokens_in, tokens_out, amount)


def _open(path: Path, timeout: float) -> sqlite3.Connection:
    """Open a file for reading; SQLite rolls back what a killed Hermes has left half written."""
    try:
        return _connect(path, "ro", timeout)
    except sqlite3.Error as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY:
            raise
    _connect(path, "rw", timeout).close()
    return _connect(path, "ro", timeout)


def _connect(path: Path, mode: str, timeout: float) -> sqlite3.Connection:
    where = f"file:{quote(str(path.absolute()))}?mode={mode}"
    db = sqlite3.connect(where, uri=True, isolation_level=None, timeout=timeout)
    db.text_factory = _text
    try:
        db.execute("pragma schema_version").fetchone()
    except sqlite3.Error:
        db.close()
        raise
    return db


class StateDb:
    """A ``state.db``, opened only for reading. Use it from one thread."""

    def __init__(self, path: Path, *, wait: float = 5) -> None:
        """Open the file and check its schema.

        Args:
            wait: how long a read waits for a lock at most, seconds.
        """
        self._path = path
        if not path.is_file():
            raise StateDbError(f"{path}: no such file; has Hermes ever run with this home?")
        try:
            self._db = _open(path, timeout=wait)
        except sqlite3.Error as error:
            raise self._damage_error(error) from error
        try:
            self._check()
        except BaseException:
            self._db.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def _damage_error(self, error: sqlite3.Error) -> StateDbError:
        return StateDbError(
            f"{self._path}: {error}; Hermes repairs its database when it starts "
            f"(`hermes sessions repair`); nothing was changed"
        )

    def _query(self, sql: str, *values: object) -> list[Any]:
        try:
            with closing(self._db.execute(sql, values)) as cursor:
                return cursor.fetchall()
        except sqlite3.Error as error:
            raise self._damage_error(error) from error

    def _check(self) -> None:
        for table, columns in (("sessions", _SESSION_COLUMNS), ("messages", _MESSAGE_COLUMNS)):
            found = self._columns(table)
            missing = [name for name in columns if name not in found]
            if missing:
                raise StateDbError(
                    f"{self._path}: schema version {self._version()} has no "
                    f"{table}.{', '.join(missing)}; version {WRITTEN_FOR} (Hermes 0.19.0) is "
                    f"needed: start Hermes 0.19.0 or later once, which updates the file"
                )

    def _columns(self, table: str) -> set[str]:
        return {row[1] for row in self._query(f"pragma table_info({table})")}

    def _version(self) -> str:
        try:
            rows = self._query("select max(version) from schema_version")
        except StateDbError:
            return "unknown"
        return str(rows[0][0])

    def message_count(self) -> int:
        """Return how many messages there are.

        Raises:
            StateDbError: the file is damaged or locked.
        """
        return int(self._query("select count(*) from messages")[0][0])

    def sessions(self) -> Iterator[StoredSession]:
        """Yield the sessions, oldest first: a parent comes before its children.

        Raises:
            StateDbError: the file is damaged or locked.
        """
        at, last = -math.inf, ""
        sql = _SESSIONS + "where (started_at, id) > (?, ?) order by started_at, id limit ?"
        while page := self._query(sql, at, last, _PAGE):
            yield from map(_session, page)
            last, at = page[-1][0], page[-1][6]

    def session(self, session_id: str) -> StoredSession | None:
        """Return the session with an id; None if there is none.

        Raises:
            StateDbError: the file is damaged or locked.
        """
        rows = self._query(_SESSIONS + "where id = ?", session_id) if session_id else []
        return _session(rows[0]) if rows else None

    def usage(self, session_id: str) -> tuple[ModelUsage, ...]:
        """Return what Hermes counted for a session, by model and task; none if it did not.

        Raises:
            StateDbError: the file is damaged or locked.
        """
        if not self._columns("session_model_usage") >= _USAGE_COLUMNS:
            return ()
        return tuple(_usage(*row) for row in self._query(_USED, session_id))

    def children(self, session_id: str) -> list[StoredSession]:
        """Return the sessions that came from another one and began after it, oldest first.

        Raises:
            StateDbError: the file is damaged or locked.
        """
        sql = (
            "where parent_session_id = ?1 and started_at > "
            "(select started_at from sessions where id = ?1) order by started_at, id"
        )
        return [_session(row) for row in self._query(_SESSIONS + sql, session_id)]

    def standing(self, session_id: str, role: str, most: int) -> list[StoredMessage]:
        """Return the newest rows of a role that the user did not take back, newest first.

        Raises:
            StateDbError: the file is damaged or locked.
        """
        sql = "where session_id = ? and role = ? and (active or compacted) order by id desc limit ?"
        return [_row(row) for row in self._query(_MESSAGES + sql, session_id, role, most)]

    def taken_back(self, session_id: str, role: str, most: int) -> list[StoredMessage]:
        """Return the newest messages of a role that the user took back, oldest first.

        Each has the id of its newest row, which remains the same.

        Raises:
            StateDbError: the file is damaged or locked.
        """
        sql = (
            "select min(id) from (select id from messages where session_id = ? and role = ? "
            "and active = 0 and compacted = 0 order by id desc limit ?)"
        )
        [(least,)] = self._query(sql, session_id, role, most)
        if least is None:
            return []
        carried = follow(
            self._marks("session_id = ? and role = ?", session_id, role, after=least - 1)
        )
        rows = self._messages(sorted(carried.taken_back)[-most:], carried)
        return [msgspec.structs.replace(row, id=carried.taken_back[row.id]) for row in rows]

    def rows(self, session_id: str) -> Iterator[StoredMessage]:
        """Yield a session's messages, each once, in the order they were first written.

        Their marks are read first, because no index of Hermes's orders them.

        Raises:
            StateDbError: the file is damaged or locked.
        """
        carried = follow(self._marks("session_id = ?", session_id))
        yield from self._messages(carried.first, carried)

    def _marks(self, where: str, *values: object, after: int = 0) -> Iterator[RowMark]:
        there = self._columns("messages")
        newer = [name if name in there else "''" for name in _NEWER_COLUMNS]
        columns = ", ".join((*_MARK_COLUMNS, *newer))
        sql = f"select {columns} from messages where {where} and id > ? order by id limit ?"  # noqa: S608
        while page := self._query(sql, *values, after, _MARK_PAGE):
            yield from map(_mark, page)
            after = page[-1][0]

    def _messages(self, ids: Sequence[int], carried: Carried) -> Iterator[StoredMessage]:
        for start in range(0, len(ids), _PAGE):
            for row in map(_row, self._page(ids[start : start + _PAGE])):
                yield msgspec.structs.replace(row, taken_back=row.id in carried.taken_back)

    def _page(self, ids: Sequence[int]) -> list[Any]:
        holes = ",".join("?" * len(ids))
        return self._query(f"{_MESSAGES} where id in ({holes}) order by id", *ids)


def _text(raw: bytes) -> str:
    """Decode stored text; bytes that are not UTF-8 become replacement characters."""
    return raw.decode("utf-8", "replace")


def _session(row: Any) -> StoredSession:
    config = _mapping(row[4])
    return StoredSession(
        id=str(row[0]),
        source=str(row[1] or ""),
        user=str(row[2] or ""),
        model=str(row[3] or ""),
        parent=str(row[5] or ""),
        started_at=_ms(row[6]),
        ended_at=_ms(row[7]),
        end_reason=str(row[8] or ""),
        title=str(row[9] or ""),
        branched=config.get("_branched_from") is not None,
        delegated=config.get("_delegate_from") is not None,
        details={name: str(value) for name, value in zip(_DETAILS, row[10:], strict=True) if value},
    )


def _row(row: Any) -> StoredMessage:
    return StoredMessage(
        id=row[0],
        role=str(row[2]),
        content=_content(row[3]),
        at=_ms(row[7]),
        tool_calls=_decode_json(row[5]),
        tool_call_id=str(row[4] or ""),
        tool_name=str(row[6] or ""),
        observed=bool(row[8]),
    )


def _mark(row: Any) -> RowMark:
    number, role, at, call, active, compacted, summary, uid, absorbed, kind, metadata = row
    names = ((role, at, call), *([uid] if uid else []))
    uids = _decode_json(absorbed)
    return RowMark(
        id=number,
        names=() if summary and not spoken_text(summary) else names,
        active=bool(active),
        stands=bool(active or compacted),
        absorbed=tuple(map(str, uids)) if isinstance(uids, list) else (),
        by_host=kind in _SWITCHES or _QUEUED in (metadata or ""),
    )


def _content(value: Any) -> Any:
    """Return a content as Hermes had it in memory: text or a list of parts."""
    if isinstance(value, str) and value.startswith(_JSON):
        return _decode_json(value[len(_JSON) :])
    return value if isinstance(value, str) else "" if value is None else str(value)


def _decode_json(value: Any) -> Any:
    """Decode stored JSON; return None for anything else, as Hermes does."""
    if not isinstance(value, str) or not value:
        return None
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return None


def _mapping(value: Any) -> dict[str, Any]:
    found = _decode_json(value)
    return found if isinstance(found, dict) else {}


def _ms(value: Any) -> int:
    """Return a time of Hermes (seconds) in milliseconds; 0 if no calendar has such a time."""
    if not isinstance(value, int | float) or not 0 <= value <= LATEST / 1000:
        return 0
    return int(value * 1000)
