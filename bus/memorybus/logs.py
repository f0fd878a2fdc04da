"""Logging of workers and the command line: structlog renders what the standard library logs.

The bus itself logs through ``logging.getLogger("memorybus")`` and configures nothing: an agent's
logging belongs to the agent. The lines of a worker have fields: ``provider``, ``partition`` and
``epoch``, which its threads bind with structlog, and the event that the thread works on.
"""

import logging
import sys
import threading
from collections.abc import Callable, Collection, MutableMapping
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import structlog

from memorybus.text.display import visible
from memorybus.text.redact import masked

if TYPE_CHECKING:
    from memorybus.log.entry import LoggedEvent

Form = Literal["text", "json"]

Finds: TypeAlias = "Callable[[], LoggedEvent | None]"

UNDER_WAY: "ContextVar[Finds | None]" = ContextVar("memorybus_event_under_way", default=None)
"""Finds the event that this thread works on; called for each line, so that events cost nothing."""

_NAME_CHARS = 200

_NAMES = frozenset(("provider", "partition", "epoch", "event_id", "session", "key"))
"""Fields that are shown without masking, for filters: names of ours, no text of a backend."""

_log = logging.getLogger("memorybus")


class _Sanitiser:
    """Makes the texts of a line safe to show.

    Credentials are masked, control characters are escaped, and only a traceback has several lines.
    """

    def __init__(self, secrets: Collection[str]) -> None:
        self._secrets = secrets

    def __call__(
        self, _: Any, __: str, fields: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        for name, value in fields.items():
            if value is None or isinstance(value, int | float):
                continue
            text = str(value)
            shown = visible(text if name in _NAMES else masked(text, self._secrets))
            fields[name] = shown if name == "exception" else shown.replace("\n", "\\n")
        return fields


def _add_event(_: Any, __: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the event that this thread works on."""
    find = UNDER_WAY.get()
    event = find() if find else None
    if event is not None:
        envelope = event.envelope
        fields["event_id"] = envelope.id
        fields["session"] = envelope.session.id[:_NAME_CHARS]
        fields["key"] = envelope.key[:_NAME_CHARS]
    return fields


def set_up(
    form: Form = "text", level: int = logging.INFO, secrets: Collection[str] = frozenset()
) -> None:
    """Send log lines to stderr, as text for people or as JSON lines, with credentials masked.

    An uncaught error is logged too, since its traceback may quote what a backend was sent.

    Args:
        form: text or JSON.
        level: the lowest level shown.
        secrets: values to mask wherever they stand; see `redact.masked`.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(form, secrets))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread


def _formatter(form: Form, secrets: Collection[str]) -> logging.Formatter:
    fields: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        _add_event,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.ExtraAdder(),
    ]
    renderer = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=fields,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            _Sanitiser(secrets),
            renderer,
        ],
    )


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, Exception):
        _log.critical("ended by what nobody caught", exc_info=(kind, error, trace))


def _uncaught_in_thread(found: threading.ExceptHookArgs) -> None:
    if found.exc_value is not None:
        _uncaught(found.exc_type, found.exc_value, found.exc_traceback)
