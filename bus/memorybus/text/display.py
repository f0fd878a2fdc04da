"""Shows times to people, and makes texts safe for a terminal or a log."""

import unicodedata
from datetime import UTC, datetime

from memorybus.events import LATEST, AnyEvent, UnknownEvent

_KEPT_CHARACTERS = frozenset("\n\t")
_DANGEROUS_CATEGORIES = frozenset(("Cc", "Cs", "Zl", "Zp"))
_DIRECTIONS = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def visible(text: str) -> str:
    """Return `text` with every character that could steer a terminal made visible."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_show_escaped(char) if is_dangerous(char) else char for char in text)


def one_line(text: str, width: int = 0) -> str:
    """Return a text escaped and on one line, cut to `width` characters if that is not 0."""
    flat = visible(" ".join(text.split()))
    return flat if not width or len(flat) <= width else flat[: width - 1] + "…"


def iso(ms: int | None) -> str | None:
    """Return milliseconds as ISO 8601 in UTC; None if unknown (None, 0) or beyond any calendar."""
    if ms is None or not 0 < ms <= LATEST:
        return None  # a producer may send any number; an impossible time must not stop us
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def is_dangerous(char: str) -> bool:
    """Return whether a character could steer a terminal; line breaks and tabs may not."""
    if char in _KEPT_CHARACTERS or (char.isascii() and char.isprintable()):
        return False
    return char in _DIRECTIONS or unicodedata.category(char) in _DANGEROUS_CATEGORIES


def escape_char(char: str) -> str:
    return f"\\u{ord(char):04x}"


def _show_escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else escape_char(char)


def event_name(event: AnyEvent) -> str:
    return event.name if isinstance(event, UnknownEvent) else type(event).__name__


def format_size(count: float) -> str:
    """Return bytes as people read them: "1.4 GiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def count_text(number: int, what: str) -> str:
    """Return a number with its noun: ``1 event``, ``2 events``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def format_duration(seconds: float) -> str:
    """Return a time span as people read it, in its largest unit: "36 hours"."""
    for unit, length in (("day", 86_400.0), ("hour", 3_600.0), ("minute", 60.0)):
        if seconds >= 2 * length or (unit == "minute" and seconds >= length):
            count = round(seconds / length)
            return f"{count:,} {unit}{'' if count == 1 else 's'}"
    return f"{seconds:.0f} seconds"
