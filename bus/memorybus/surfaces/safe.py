"""What may be printed: text of users and memories is hostile to terminals.

Control characters, escape sequences, direction overrides and lone surrogates are shown as escapes;
markup is never interpreted, because such text only ever goes into `rich.text.Text`.
"""

import json
import unicodedata
from typing import Any

_KEPT = frozenset("\n\t")
_DANGEROUS = frozenset(("Cc", "Cs", "Zl", "Zp"))
_DIRECTIONS = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def visible(text: str) -> str:
    """Return `text` with every character that could steer a terminal made visible."""
    return "".join(_shown(char) if _is_dangerous(char) else char for char in text)


def one_line(text: str, width: int = 0) -> str:
    """Return `text` visible, on one line, cut to `width` characters if one is given."""
    flat = visible(" ".join(text.split()))
    return flat if not width or len(flat) <= width else flat[: width - 1] + "…"


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """Return JSON that is safe to print: readable scripts stay, steering characters are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return "".join(_json_escape(c) if _is_dangerous(c) else c for c in text)


def _is_dangerous(char: str) -> bool:
    if char in _KEPT or (char.isascii() and char.isprintable()):
        return False
    return char in _DIRECTIONS or unicodedata.category(char) in _DANGEROUS


def _shown(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else _json_escape(char)


def _json_escape(char: str) -> str:
    return f"\\u{ord(char):04x}"
