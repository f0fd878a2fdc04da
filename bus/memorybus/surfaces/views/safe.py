"""The one door for hostile text on its way to a terminal.

Markup is never interpreted: what is printed goes into `rich.text.Text`.
"""

import json
from typing import Any

from memorybus.text.display import escape_char, is_dangerous, visible

__all__ = ["harmless", "json_text", "one_line", "visible"]


def one_line(text: str, width: int = 0) -> str:
    """Return a text harmless and on one line, cut to `width` characters if one is given."""
    flat = visible(" ".join(text.split()))
    return flat if not width or len(flat) <= width else flat[: width - 1] + "…"


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """Return JSON that is safe to print: readable scripts stay, steering characters are escaped."""
    return harmless(json.dumps(value, ensure_ascii=False, indent=indent))


def harmless(text: str) -> str:
    """Return a text of JSON that says the same, with its steering characters escaped."""
    return "".join(escape_char(c) if is_dangerous(c) else c for c in text)
