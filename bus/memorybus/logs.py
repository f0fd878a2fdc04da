"""Logging of workers and the command line: structlog renders, the standard library carries.

The bus itself logs through ``logging.getLogger("memorybus")`` and configures nothing: an agent's
logging is the agent's.
"""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Literal

import structlog

from memorybus.plain import visible

Form = Literal["text", "json"]


def _made_visible(_: Any, __: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Let no text of a provider's error steer the terminal or begin a line of its own."""
    for name, value in fields.items():
        if isinstance(value, str):
            fields[name] = visible(value).replace("\n", "\\n")
    return fields


def set_up(form: Form = "text", level: int = logging.INFO) -> None:
    """Send log lines to stderr, as text for people or as JSON lines.

    Args:
        form: which.
        level: the least level shown.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.ExtraAdder(),
        _made_visible,
    ]
    renderer = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
