"""Formats figures: short, with their unit; pure."""

from datetime import datetime

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def duration(seconds: float | None) -> str:
    """Return a time span in its largest unit: ``45 s``, ``3 min``, ``2 h``; "" for none."""
    if seconds is None:
        return ""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def ago(at: str | None, now_ms: int) -> str:
    """Return how long ago an ISO 8601 time is; "" for none."""
    if not at:
        return ""
    return duration(now_ms / 1000 - datetime.fromisoformat(at).timestamp())


def since(at_ms: int, now_ms: int) -> str:
    """Return how long ago a time in milliseconds is; "" for 0."""
    return duration((now_ms - at_ms) / 1000) if at_ms else ""


def short(at: str | None) -> str:
    """Return an ISO 8601 time as tables show it: ``2026-05-31 18:00:00``; "" for none."""
    return (at or "")[:19].replace("T", " ")


def count(number: float | None) -> str:
    """Return a number with thin spaces between its thousands; "" for none."""
    if number is None:
        return ""
    rounded = round(number, 1) if abs(number) < 10 else round(number)
    return f"{rounded:,}".replace(",", "\u202f").removesuffix(".0")
