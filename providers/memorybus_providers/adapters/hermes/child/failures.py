"""Decides what a plugin's exception means for an event: try again, wait for the backend, or refuse.

Plugins may use any library, so errors are recognised by base class, by name and by HTTP status.
"""

import re
import sqlite3
import traceback
from collections.abc import Callable
from typing import Any, Final

FailureAnswer = dict[str, str]

TRANSIENT: Final = "Transient"
UNAVAILABLE: Final = "Unavailable"
PERMANENT: Final = "Permanent"

_MAX_MESSAGE_CHARS = 2_000
_MAX_TRACE_CHARS = 8_000

_UNAVAILABLE_ERRORS = frozenset(
    (
        "APIConnectionError",
        "ConnectError",
        "ConnectionError",
        "ConnectTimeout",
        "NewConnectionError",
        "PoolTimeout",
        "ProxyError",
        "RemoteProtocolError",
        "URLError",
    )
)
_TIMEOUT_ERRORS = frozenset(
    ("APITimeoutError", "ReadTimeout", "Timeout", "TimeoutException", "ReadError")
)
_ACCESS_STATUSES = frozenset((401, 402, 403))
_GATEWAY_STATUSES = frozenset((502, 503, 504))
_RETRYABLE_STATUSES = frozenset((408, 409, 423, 425, 429))
_STATUS_IN_TEXT = re.compile(r"(?i)(?:\bHTTP |\bstatus |\()([45]\d\d)\b")
"""A status in the text of an error that has no other type than RuntimeError."""

_LOCK_CODES = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED))


class CallRefused(Exception):
    """A failure for which the host states the meaning.

    Args:
        meaning: TRANSIENT, UNAVAILABLE or PERMANENT.
        message: the text for people.
    """

    def __init__(self, meaning: str, message: str) -> None:
        super().__init__(message)
        self.meaning = meaning


def meaning_of(error: BaseException) -> str:
    """Return the meaning of an error, or of its first cause with a known meaning."""
    seen: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in seen:
        known = _known_meaning(current)
        if known:
            return known
        seen.append(current)
        current = current.__cause__ or current.__context__
    return PERMANENT


def meaning_of_status(status: int) -> str:
    """Return the meaning of an HTTP status from 400 on."""
    if status in _ACCESS_STATUSES or status in _GATEWAY_STATUSES:
        return UNAVAILABLE  # access is denied to all, or the backend is down
    return TRANSIENT if status in _RETRYABLE_STATUSES or status >= 500 else PERMANENT


def answer_of(error: BaseException, mask: Callable[[str], str]) -> FailureAnswer:
    """Return the answer that reports an error: bounded, without credentials."""
    trace = "".join(traceback.format_exception(error))[-_MAX_TRACE_CHARS:]
    text = f"{type(error).__name__}: {error}" if not isinstance(error, CallRefused) else str(error)
    return {
        "class": meaning_of(error),
        "message": mask(text[:_MAX_MESSAGE_CHARS]),
        "trace": mask(trace),
    }


def _known_meaning(error: BaseException) -> str:
    if isinstance(error, CallRefused):
        return error.meaning
    status = _status(error)
    if status:
        return meaning_of_status(status)
    if isinstance(error, sqlite3.OperationalError):
        return _meaning_of_sqlite(error)
    if isinstance(error, ImportError):
        return UNAVAILABLE  # a package is missing: no event is at fault
    return _meaning_by_name(error)


def _meaning_of_sqlite(error: sqlite3.OperationalError) -> str:
    """Return the meaning of SQLite's error code; "" if the error was not made by SQLite."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return ""
    primary = code & 0xFF  # the last byte is the primary code
    return TRANSIENT if primary in _LOCK_CODES else PERMANENT


def _meaning_by_name(error: BaseException) -> str:
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & _UNAVAILABLE_ERRORS:
        return UNAVAILABLE
    return TRANSIENT if names & _TIMEOUT_ERRORS or isinstance(error, OSError) else ""


def _status(error: BaseException) -> int:
    response: Any = getattr(error, "response", None)
    for holder, name in ((error, "status_code"), (error, "status"), (response, "status_code")):
        value = getattr(holder, name, None)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    code = getattr(error, "code", None)  # urllib's HTTPError
    if isinstance(code, int) and 400 <= code < 600:
        return code
    named = _STATUS_IN_TEXT.search(str(error)) if type(error) is RuntimeError else None
    return int(named[1]) if named else 0
