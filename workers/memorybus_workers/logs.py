"""Sets up the logging of processes: structlog renders what they and their libraries log.

The bus itself logs through ``logging.getLogger("memorybus")`` and configures nothing: an agent's
logging belongs to the agent. The lines of a worker have fields: those that its threads bind with
``structlog.contextvars``, such as ``provider``, and the lane and event that the thread works on.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar
from functools import cached_property, wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from memorybus.clock import Clock
from memorybus.config.settings import LogForm, LogLevel
from memorybus.text.display import visible
from memorybus.text.redact import masked

if TYPE_CHECKING:
    from memorybus.log.entry import LoggedEvent
    from structlog.typing import EventDict


_EVENT: ContextVar[Callable[[], LoggedEvent | None] | None] = ContextVar(
    "memorybus_event_under_way", default=None
)
"""Finds the event that this thread works on; called for each line, so that events cost nothing."""

_LANE: ContextVar[tuple[int, int | None] | None] = ContextVar("memorybus_lane", default=None)
"""The partition of the lane that this thread works on, and its epoch if the lane is owned.

It is apart from the bound fields because a worker sets it several times for each event.
"""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Self = TypeVar("_Self")
_NAME_CHARS = 200
_UNMASKED_FIELDS = frozenset(("provider", "partition", "epoch", "event_id", "session", "key"))
"""Fields that are not masked, so that logs can be filtered by them: they hold our own names."""

_CHATTY_LOGGERS = frozenset(("httpcore", "httpx"))
"""Loggers of which only warnings are shown: they log each request, with names in its path."""

_log = logging.getLogger("memorybus")


class _Activity(Protocol):
    @property
    def current_call(self) -> str: ...


class _Lane(Protocol):
    @property
    def partition(self) -> int: ...

    @property
    def epoch(self) -> int: ...


_AnyLane = TypeVar("_AnyLane", bound=_Lane)


class _Formatter(logging.Formatter):
    """Renders records with structlog, which is loaded for the first line.

    Loading it takes 0.1 s and loads rich and asyncio; a process that logs nothing does without.
    """

    def __init__(self, form: LogForm, secrets: Collection[str], *, colours: bool) -> None:
        super().__init__()
        self._form = form
        self._secrets = secrets
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        return self._processors.format(record)

    @cached_property
    def _processors(self) -> logging.Formatter:
        from structlog import contextvars, dev, processors, stdlib

        return stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                contextvars.merge_contextvars,
                _add_work,
                stdlib.add_log_level,
                processors.TimeStamper(fmt="iso", utc=True),
                stdlib.ExtraAdder(),
            ],
            processors=[
                stdlib.ProcessorFormatter.remove_processors_meta,
                processors.format_exc_info,
                self._make_safe,
                processors.JSONRenderer(sort_keys=True)
                if self._form == "json"
                else dev.ConsoleRenderer(
                    colors=self._colours, exception_formatter=dev.plain_traceback
                ),
            ],
        )

    def _make_safe(self, _logger: object, _method: str, fields: EventDict) -> EventDict:
        """Mask credentials, and escape what could steer a terminal or forge a line."""
        return {name: self._safe(name, value) for name, value in fields.items()}

    def _safe(self, name: str, value: object) -> str | int | float | None:
        if value is None or isinstance(value, int | float):
            return value
        text = str(value)
        shown = visible(text if name in _UNMASKED_FIELDS else masked(text, self._secrets))
        return shown if name == "exception" else shown.replace("\n", "\\n")


def _add_work(_logger: object, _method: str, fields: EventDict) -> EventDict:
    partition, epoch = _LANE.get() or (None, None)
    lane = {"partition": partition, "epoch": epoch}
    return {**fields, **_present(lane), **_event_under_way()}


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _event_under_way() -> dict[str, str]:
    find = _EVENT.get()
    event = find() if find else None
    if event is None:
        return {}
    envelope = event.envelope
    return {
        "event_id": envelope.id,
        "session": envelope.session.id[:_NAME_CHARS],
        "key": envelope.key[:_NAME_CHARS],
    }


def set_up(
    form: LogForm = "text", level: LogLevel = "info", secrets: Collection[str] = frozenset()
) -> None:
    """Send log lines to stderr, as text for people or as JSON lines, with credentials masked."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(form, secrets, colours=sys.stderr.isatty()))
    handler.addFilter(_is_worth_a_line)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_uncaught_in_thread


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Return whether a record is shown: HTTP clients log every request, which is too much."""
    return record.levelno >= logging.WARNING or record.name.split(".")[0] not in _CHATTY_LOGGERS


def _log_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if issubclass(kind, Exception):
        _log.critical("uncaught exception", exc_info=(kind, error, trace))


def _log_uncaught_in_thread(failure: threading.ExceptHookArgs) -> None:
    if failure.exc_value is not None:
        _log_uncaught(failure.exc_type, failure.exc_value, failure.exc_traceback)


def bind_lane(lane: _AnyLane) -> _AnyLane:
    """Let later log lines of this thread name a lane, and no event yet; return the lane."""
    _LANE.set((lane.partition, lane.epoch))
    _EVENT.set(None)
    return lane


def bind_partition(partition: int) -> None:
    _LANE.set((partition, None))
    _EVENT.set(None)


def unbind_lane() -> None:
    _LANE.set(None)
    _EVENT.set(None)


def bind_calls(activity: _Activity, events: Sequence[LoggedEvent]) -> None:
    """Let later log lines of this thread name the event, of these, whose call is under way."""

    def find_event() -> LoggedEvent | None:
        now = activity.current_call
        return next((event for event in events if event.envelope.id == now), None)

    _EVENT.set(find_event)


def bind_event(
    step: Callable[Concatenate[_Self, _AnyLane, LoggedEvent, _P], _R],
) -> Callable[Concatenate[_Self, _AnyLane, LoggedEvent, _P], _R]:
    """Let the log lines of a method name the event that is its second argument."""

    @wraps(step)
    def with_event(
        self: _Self, lane: _AnyLane, event: LoggedEvent, /, *args: _P.args, **named: _P.kwargs
    ) -> _R:
        before = _EVENT.set(lambda: event)
        try:
            return step(self, lane, event, *args, **named)
        finally:
            _EVENT.reset(before)

    return with_event


REPEAT_SECONDS = 60.0  # seconds after which the same reason is warned of again


class RateLimitedWarning:
    """Logs a warning about what fails, each reason once a minute. Belongs to one thread."""

    def __init__(self, text: str, clock: Clock) -> None:
        self._text = text
        self._clock = clock
        self._warned_at: dict[str, float] = {}

    def warn(self, reason: object, error: Exception | None = None) -> None:
        """Log the warning, at most once a minute for each reason; show `error`'s traceback."""
        now, words = self._clock.monotonic(), str(reason)
        self._warned_at = {
            one: at for one, at in self._warned_at.items() if now - at < REPEAT_SECONDS
        }
        if words not in self._warned_at:
            self._warned_at[words] = now
            _log.warning(self._text, words, exc_info=error)
