"""Sets up the logging of workers and the command line: the form of the lines and their fields.

The bus itself logs through ``logging.getLogger("memorybus")`` and configures nothing: an agent's
logging belongs to the agent. The lines of a worker have fields: those that its threads `bind`, such
as ``provider``, the lane that the thread works on (`LANE`), and the event (`UNDER_WAY`).
"""

import json
import logging
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, TypeAlias

from memorybus.config.settings import LogForm, LogLevel
from memorybus.text.display import iso, visible
from memorybus.text.redact import masked

if TYPE_CHECKING:
    from memorybus.log.entry import LoggedEvent

EventFinder: TypeAlias = "Callable[[], LoggedEvent | None]"

UNDER_WAY: "ContextVar[EventFinder | None]" = ContextVar("memorybus_event_under_way", default=None)
"""Finds the event that this thread works on; called for each line, so that events cost nothing."""

LANE: "ContextVar[tuple[int, int | None] | None]" = ContextVar("memorybus_lane", default=None)
"""The partition of the lane that this thread works on, and its epoch if the lane is owned.

It is apart from the other fields because a worker sets it several times for each event.
"""

_BOUND_FIELDS: ContextVar[Mapping[str, object]] = ContextVar(
    "memorybus_log_fields", default=MappingProxyType({})
)

_NAME_CHARS = 200

_UNMASKED_FIELDS = frozenset(("provider", "partition", "epoch", "event_id", "session", "key"))
"""Fields that are not masked, so that logs can be filtered by them: they hold our own names."""

_STANDARD_FIELDS = logging.makeLogRecord({}).__dict__.keys() | {"message", "asctime"}
"""Attributes of every record of the standard library; all others were given by the caller."""

_CHATTY_LOGGERS = frozenset(("httpcore", "httpx"))
"""Loggers of which only warnings are shown: they log each request, with names in its path."""

_COLOURS = {"warning": "\x1b[33m", "error": "\x1b[31m", "critical": "\x1b[31;1m"}
_PLAIN = "\x1b[0m"

_log = logging.getLogger("memorybus")


def bind(**fields: object) -> None:
    """Let later lines of this thread have these fields, besides those that it has."""
    _BOUND_FIELDS.set({**_BOUND_FIELDS.get(), **fields})


@contextmanager
def scoped_fields() -> Iterator[None]:
    """Restore the bound fields of this thread when the block ends."""
    before = _BOUND_FIELDS.set(_BOUND_FIELDS.get())
    try:
        yield
    finally:
        _BOUND_FIELDS.reset(before)


class _Formatter(logging.Formatter):
    """Makes lines that are safe to show: as JSON, or as text for people.

    Credentials are masked, control characters are escaped, and only a traceback has several lines.
    """

    def __init__(self, form: LogForm, secrets: Collection[str], *, colours: bool) -> None:
        super().__init__()
        self._form = form
        self._secrets = secrets
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        fields = {name: self._safe(name, value) for name, value in self._fields(record).items()}
        return json.dumps(fields) if self._form == "json" else _text(fields, self._colours)

    def _fields(self, record: logging.LogRecord) -> dict[str, object]:
        given = record.__dict__
        fields = {
            "event": record.getMessage(),
            **_BOUND_FIELDS.get(),
            **_lane_fields(),
            **_event_under_way(),
            "level": record.levelname.lower(),
            "timestamp": iso(round(record.created * 1000)),
            **{name: given[name] for name in given if name not in _STANDARD_FIELDS},
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return fields

    def _safe(self, name: str, value: object) -> str | int | float | None:
        if value is None or isinstance(value, int | float):
            return value
        text = str(value)
        shown = visible(text if name in _UNMASKED_FIELDS else masked(text, self._secrets))
        return shown if name == "exception" else shown.replace("\n", "\\n")


def _lane_fields() -> dict[str, int]:
    partition, epoch = LANE.get() or (None, None)
    fields = {"partition": partition, "epoch": epoch}
    return {name: value for name, value in fields.items() if value is not None}


def _event_under_way() -> dict[str, str]:
    find = UNDER_WAY.get()
    event = find() if find else None
    if event is None:
        return {}
    envelope = event.envelope
    return {
        "event_id": envelope.id,
        "session": envelope.session.id[:_NAME_CHARS],
        "key": envelope.key[:_NAME_CHARS],
    }


def _text(fields: dict[str, str | int | float | None], colours: bool) -> str:
    """Return a line for people: time, level, message, other fields; the traceback goes below it."""
    message, level, at = (str(fields.pop(name)) for name in ("event", "level", "timestamp"))
    trace = fields.pop("exception", None)
    begin, end = (_COLOURS.get(level, ""), _PLAIN) if colours else ("", "")
    others = "".join(f" {name}={value}" for name, value in fields.items())
    line = f"{at} [{begin}{level:<8}{end}] {message:<30}{others}".rstrip()
    return line if trace is None else f"{line}\n{trace}"


def set_up(
    form: LogForm = "text", level: LogLevel = "info", secrets: Collection[str] = frozenset()
) -> None:
    """Send log lines to stderr, as text for people or as JSON lines, with credentials masked.

    An uncaught error is logged too, since its traceback may quote what a backend was sent.

    Args:
        form: text or JSON.
        level: the lowest level shown.
        secrets: values to mask wherever they occur; see `redact.masked`.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(form, secrets, colours=sys.stderr.isatty()))
    handler.addFilter(_is_worth_a_line)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_uncaught_in_thread


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Say whether a record is shown: HTTP clients log every request, which is too much."""
    return record.levelno >= logging.WARNING or record.name.split(".")[0] not in _CHATTY_LOGGERS


def _log_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if issubclass(kind, Exception):
        _log.critical("ended by what nobody caught", exc_info=(kind, error, trace))


def _log_uncaught_in_thread(found: threading.ExceptHookArgs) -> None:
    if found.exc_value is not None:
        _log_uncaught(found.exc_type, found.exc_value, found.exc_traceback)
