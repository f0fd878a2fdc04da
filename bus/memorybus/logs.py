"""Logging of workers and the command line: structlog renders, the standard library carries.

The bus itself logs through ``logging.getLogger("memorybus")`` and configures nothing: an agent's
logging is the agent's. A worker's lines carry what they are about as fields: ``provider``,
``partition`` and ``epoch`` as its threads bind them with structlog, and the event under way.
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
"""Finds the event that this thread is busy with: asked by a line, so that events cost nothing."""

_NAME_CHARS = 200

_NAMES = frozenset(("provider", "partition", "epoch", "event_id", "session", "key"))
"""What lines are filtered by, and so shown as it is: names of ours, no text of a backend."""

_log = logging.getLogger("memorybus")


class _Fit:
    """Makes the texts of a line fit to be shown.

    No credential is in them, and none steers a terminal or, but for a traceback, begins a line.
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


def _event_told(_: Any, __: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Name the event under way."""
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
    """Send log lines to stderr, as text for people or as JSON lines, credentials masked.

    What nobody caught is a line, too: its traceback may quote what a backend was sent.

    Args:
        form: which.
        level: the least level shown.
        secrets: values to mask wherever they stand; see `masking.masked`.
    """
    told: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        _event_told,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.ExtraAdder(),
    ]
    renderer = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=told,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _Fit(secrets),
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, Exception):
        _log.critical("ended by what nobody caught", exc_info=(kind, error, trace))


def _uncaught_in_thread(found: threading.ExceptHookArgs) -> None:
    if found.exc_value is not None:
        _uncaught(found.exc_type, found.exc_value, found.exc_traceback)
