"""Times in transcripts, as milliseconds since the Unix epoch."""

import math
import re
from datetime import UTC, datetime
from typing import Any

from memorybus.events import LATEST

_SPOKEN = re.compile(
    r"\s*(\d{1,2}):(\d{2})\s*([ap])\.?m\.?\s+on\s+(\d{1,2})\s+([a-z]+),?\s+(\d{4})\s*",
    re.IGNORECASE,
)
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_AGO = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*([smhdw])")
_LENGTHS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
"""Seconds of the units of `parse_ago`."""

_SECONDS_END = 100_000_000_000
"""Numbers below are seconds (until the year 5138), numbers from here on milliseconds."""


def parse_spoken_time(text: str) -> int:
    """Read a LoCoMo session time such as ``1:56 pm on 8 May, 2023``, taken as UTC.

    Raises:
        ValueError: it is not such a time.
    """
    found = _SPOKEN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a time like '1:56 pm on 8 May, 2023'")
    hour, minute, half, day, month, year = found.groups()
    if month[:3].lower() not in _MONTHS or not 1 <= int(hour) <= 12:
        raise ValueError(f"{text!r} is not a time like '1:56 pm on 8 May, 2023'")
    clock_hour = int(hour) % 12 + (12 if half.lower() == "p" else 0)
    moment = datetime(
        int(year), _MONTHS[month[:3].lower()], int(day), clock_hour, int(minute), tzinfo=UTC
    )
    return round(moment.timestamp() * 1000)


def parse_timestamp(value: Any) -> int:
    """Read a time stamp: seconds or milliseconds as a number, or ISO 8601 (UTC if no zone).

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, str):
        return _iso(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a time")
    found = round(value * 1000) if abs(value) < _SECONDS_END else round(value)
    return _in_range(found, value)


def _iso(value: str) -> int:
    moment = datetime.fromisoformat(value)
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return _in_range(round(zoned.timestamp() * 1000), value)


def _in_range(found: int, value: Any) -> int:
    if not 0 <= found <= LATEST:
        raise ValueError(f"{value!r} is not a time between 1970 and 9999")
    return found


def parse_ago(text: str, now_ms: int) -> int | None:
    """Read how long ago something was: ``90s``, ``30m``, ``2h``, ``7d`` or ``3w``.

    Args:
        text: the text.
        now_ms: the present, in milliseconds.

    Returns:
        The time in milliseconds, at least 1; None if the text has another form.
    """
    found = _AGO.fullmatch(text.strip())
    if found is None:
        return None
    return max(1, now_ms - round(float(found[1]) * _LENGTHS[found[2]] * 1000))
