"""Reads Hermes's ``state.db``: sessions and messages, a few at a time, never writing.

The schema is that of Hermes 0.19.0 (``hermes_state.py``, version 22). Every read is a short one, so
that a Hermes that runs meanwhile can always checkpoint its write-ahead log; and what is read is a
page, so that memory stays flat whatever the size of the file.

What the rows mean: ``id`` is the order of insertion (time stamps may go back). ``active`` 0 with
``compacted`` 1 is a message that a compression took out of the window; with ``compacted`` 0 it is
one that the user took back (``/undo``). ``observed`` is what others said in a group, to nobody.
"""

import math
import sqlite3
from array import array
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import msgspec

from memorybus.concurrency.forking import sqlite_guard
from memorybus.errors import MemoryBusError
from memorybus.events import LATEST

WRITTEN_FOR = 22
"""The schema's version in Hermes 0.19.0; a newer one is read as long as the columns are there."""

_PAGE = 64
_SESSION_COLUMNS = (
    "id", "source", "user_id", "model", "model_config", "parent_session_id", "started_at",
    "ended_at", "end_reason", "title", "session_key", "chat_id", "chat_type", "thread_id", "cwd",
)  # fmt: skip
_DETAILS = ("gateway_session_key", "chat_id", "chat_type", "thread_id", "cwd")
"""What the last columns are called where Hermes tells them to `initialize`."""
_MESSAGE_COLUMNS = (
    "id", "session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name",
    "timestamp", "observed", "active", "compacted",
)  # fmt: skip
_SESSIONS = f"select {', '.join(_SESSION_COLUMNS)} from sessions "  # noqa: S608  names of our own
_MESSAGES = f"select {', '.join(_MESSAGE_COLUMNS)} from messages "  # noqa: S608  names of our own
_COUNTED = """
with used as (
    select model, last_seen, input_tokens + cache_read_tokens + cache_write_tokens as tokens_in,
        output_tokens as tokens_out
    from session_model_usage where session_id = ?1 and task = '')
select coalesce((select nullif(model, 'unknown') from used order by last_seen desc limit 1), model),
    (select sum(tokens_in) from used), (select sum(tokens_out) from used), tool_call_count
from sessions where id = ?1
"""
"""The main loop's calls of models alone: titles and summaries are no turn's (their `task`)."""

_JSON = "\x00json:"
"""How Hermes begins a content that is a list of parts."""


class StateDbError(MemoryBusError):
    """A ``state.db`` that is not there, damaged, or of a schema that cannot be read."""


class StoredSession(msgspec.Struct, frozen=True):
    """One row of ``sessions``; times are milliseconds, 0 if unknown.

    Attributes:
        source: the platform that it came from.
        branched: whether a ``/branch`` made it.
        delegated: whether it is a sub-agent's.
        details: what a live plugin would have been told of it besides.
    """

    id: str
    source: str
    user: str
    model: str
    parent: str
    started_at: int
    ended_at: int
    end_reason: str
    title: str
    branched: bool
    delegated: bool
    details: dict[str, str]


class StoredMessage(msgspec.Struct, frozen=True):
    """One message; `content` is text or a list of parts, `tool_calls` as the model made them.

    Attributes:
        taken_back: whether the user undid it.
        observed: whether it was said to somebody else.
        at: when it was written, milliseconds.
    """

    id: int
    role: str
    content: Any
    at: int
    tool_calls: Any = None
    tool_call_id: str = ""
    tool_name: str = ""
    taken_back: bool = False
    observed: bool = False


class SessionUsage(msgspec.Struct, frozen=True):
    """What Hermes has counted of a session so far.

    Attributes:
        model: the model that was called last; "" if none was.
        tokens_in: prompt tokens, those that the model's cache had too.
        tokens_out: completion tokens.
        tool_calls: how many tools were called.
    """

    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    tool_calls: int = 0


def usage_of(path: Path, session_id: str) -> SessionUsage | None:
    """Return what is counted of a session, within a turn: it waits for no lock (G9).

    Zeros for a session that is not stored yet; None if that cannot be read now, or not at all.
    """
    try:
        with sqlite_guard(), closing(_opened(path, timeout=0)) as db:
            found = db.execute(_COUNTED, (session_id,)).fetchone()
    except (sqlite3.Error, ValueError):  # a file, or an id, that SQLite cannot take
        return None
    if found is None:
        return SessionUsage()
    model, *counts = found
    numbers = (count if isinstance(count, int) else 0 for count in counts)
    return SessionUsage(str(model or ""), *numbers)


def _opened(path: Path, timeout: float) -> sqlite3.Connection:
    where = f"file:{quote(str(path.absolute()))}?mode=ro"
    db = sqlite3.connect(where, uri=True, isolation_level=None, timeout=timeout)
    db.text_factory = _text
    return db


class StateDb:
    """A ``state.db``, opened for reading only. Use from one thread."""

    def __init__(self, path: Path, *, wait: float = 5) -> None:
        """Open the file and look whether it can be understood.

        Args:
            path: the file.
            wait: seconds for which a read waits for a lock at most.

        Raises:
            StateDbError: no such file, not SQLite, damaged, or an older schema.
        """
        self._path = path
        if not path.is_file():
            raise StateDbError(f"{path}: no such file; has Hermes ever run with this home?")
        try:
            self._db = _opened(path, timeout=wait)
        except sqlite3.Error as error:
            raise self._broken(error) from error
        try:
            self._check()
        except BaseException:
            self._db.close()
            raise

    def __enter__(self) -> Self:
        """Return the opened file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._db.close()

    def _broken(self, error: sqlite3.Error) -> StateDbError:
        return StateDbError(
            f"{self._path}: {error}; Hermes repairs its database when it starts "
            f"(`hermes sessions repair`); nothing was changed"
        )

    def _ask(self, sql: str, *values: object) -> list[Any]:
        try:
            with closing(self._db.execute(sql, values)) as found:
                return found.fetchall()
        except sqlite3.Error as error:
            raise self._broken(error) from error

    def _check(self) -> None:
        for table, columns in (("sessions", _SESSION_COLUMNS), ("messages", _MESSAGE_COLUMNS)):
            there = {row[1] for row in self._ask(f"pragma table_info({table})")}
            missing = [name for name in columns if name not in there]
            if missing:
                raise StateDbError(
                    f"{self._path}: schema version {self._version()} has no "
                    f"{table}.{', '.join(missing)}; version {WRITTEN_FOR} (Hermes 0.19.0) is "
                    f"needed: start Hermes 0.19.0 or later once, it brings the file up to date"
                )

    def _version(self) -> str:
        try:
            found = self._ask("select max(version) from schema_version")
        except StateDbError:
            return "unknown"
        return str(found[0][0])

    def message_count(self) -> int:
        """Return how many messages there are.

        Raises:
            StateDbError: damaged.
        """
        return int(self._ask("select count(*) from messages")[0][0])

    def sessions(self) -> Iterator[StoredSession]:
        """Yield the sessions, oldest first: a parent comes before its children.

        Raises:
            StateDbError: damaged.
        """
        at, last = -math.inf, ""
        sql = _SESSIONS + "where (started_at, id) > (?, ?) order by started_at, id limit ?"
        while page := self._ask(sql, at, last, _PAGE):
            yield from map(_session, page)
            last, at = page[-1][0], page[-1][6]

    def session(self, session_id: str) -> StoredSession | None:
        """Return one session, None if there is none of that id.

        Raises:
            StateDbError: damaged.
        """
        found = self._ask(_SESSIONS + "where id = ?", session_id) if session_id else []
        return _session(found[0]) if found else None

    def newest(
        self, session_id: str, role: str, *, taken_back: bool, most: int
    ) -> list[StoredMessage]:
        """Return the newest messages of a role, those taken back or the others, newest first.

        Raises:
            StateDbError: damaged, or locked.
        """
        sql = (
            "where session_id = ? and role = ? and (active = 0 and compacted = 0) = ? "
            "order by id desc limit ?"
        )
        return [_row(row) for row in self._ask(_MESSAGES + sql, session_id, role, taken_back, most)]

    def rows(self, session_id: str) -> Iterator[StoredMessage]:
        """Yield a session's messages in the order they were written.

        Their numbers are read first (eight bytes each): no index of Hermes's orders them.

        Raises:
            StateDbError: damaged.
        """
        sql = "select id from messages where session_id = ? order by id"
        ids = array("q", (row[0] for row in self._ask(sql, session_id)))
        for start in range(0, len(ids), _PAGE):
            yield from map(_row, self._page(ids[start : start + _PAGE]))

    def _page(self, ids: "array[int]") -> list[Any]:
        holes = ",".join("?" * len(ids))
        return self._ask(f"{_MESSAGES} where id in ({holes}) order by id", *ids)


def _text(raw: bytes) -> str:
    """Read a text as it is stored; what is no UTF-8 is shown as such, it does not end the run."""
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
        tool_calls=_decoded(row[5]),
        tool_call_id=str(row[4] or ""),
        tool_name=str(row[6] or ""),
        taken_back=not row[9] and not row[10],
        observed=bool(row[8]),
    )


def _content(value: Any) -> Any:
    """Return a content as Hermes had it: text, or the parts of which it is made."""
    if isinstance(value, str) and value.startswith(_JSON):
        return _decoded(value[len(_JSON) :])
    return value if isinstance(value, str) else "" if value is None else str(value)


def _decoded(value: Any) -> Any:
    """Read stored JSON; what is none is left out, as Hermes does."""
    if not isinstance(value, str) or not value:
        return None
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return None


def _mapping(value: Any) -> dict[str, Any]:
    found = _decoded(value)
    return found if isinstance(found, dict) else {}


def _ms(value: Any) -> int:
    """Return Hermes's seconds as milliseconds; 0 for a time that no calendar has."""
    if not isinstance(value, int | float) or not 0 <= value <= LATEST / 1000:
        return 0
    return int(value * 1000)
