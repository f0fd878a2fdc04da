"""Escapes hostile text before it reaches a terminal; every text that is shown passes through here.

Markup is never interpreted, because text is printed as `rich.text.Text`.
"""

import json
from typing import Any

from memorybus.text.display import escape_char, is_dangerous, one_line, visible

__all__ = ["harmless", "json_text", "one_line", "visible"]


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """Return JSON that is safe to print: letters stay readable, control characters are escaped."""
    return harmless(json.dumps(value, ensure_ascii=False, indent=indent))


def harmless(text: str) -> str:
    """Return equivalent JSON text, with its control characters escaped."""
    return "".join(escape_char(c) if is_dangerous(c) else c for c in text)
