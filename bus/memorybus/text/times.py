"""Times in transcripts, as milliseconds since the Unix epoch."""

import re
from datetime import UTC, datetime, tzinfo
from email.utils import parsedate_to_datetime
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

_SHOWN = 80  # characters of a text that an error shows
_UNITS = ((10**11, 1), (10**14, 1_000), (10**17, 1_000_000))
"""Numbers below the first are seconds (until the year 5138), below the second milliseconds, below
the third microseconds; from there on nanoseconds. With each stands how many of it are a second."""

_NANOSECONDS = 1_000_000_000
_LARGEST = 10**21  # no number of nanoseconds from here on is a time; NaN is not below it, either
_NUMBER = re.compile(r"[-+]?\d{9,}(?:\.\d*)?")
_LEAP_SECOND = re.compile(r"(?<=:\d\d):60(?!\d)")
_ZONE_AFTER_SPACE = re.compile(r" +(?:UTC|GMT|Z|(?=[-+]\d))", re.IGNORECASE)
_SLASHES = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})")


def _spoken(text: str) -> datetime:
    match = _SPOKEN.fullmatch(text)
    if match is None or match[5][:3].lower() not in _MONTHS or not 1 <= int(match[1]) <= 12:
        raise ValueError(f"{text!r} is not a time like '1:56 pm on 8 May, 2023'")
    hour, minute, half, day, month, year = match.groups()
    clock_hour = int(hour) % 12 + (12 if half.lower() == "p" else 0)
    return datetime(int(year), _MONTHS[month[:3].lower()], int(day), clock_hour, int(minute))  # noqa: DTZ001  the caller knows the zone


def parse_timestamp(value: Any, zone: tzinfo = UTC) -> int:
    """Read a time stamp between 1970 and 9999; see `parse_moment`. `ValueError`: it is none."""
    moment = parse_moment(value, zone)
    if not 0 <= moment <= LATEST:
        raise ValueError(f"{value!r} is not a time between 1970 and 9999")
    return moment


def parse_moment(value: Any, zone: tzinfo = UTC) -> int:
    """Read a time as programs write it, as milliseconds since 1970; else `ValueError`.

    It is a number in seconds or a finer unit, ISO 8601, RFC 2822, or as LoCoMo writes it. A second
    ``:60`` is the first of the next minute; `zone` is that of a time which names none.
    """
    if isinstance(value, str):
        return _milliseconds_of_text(value.strip(), zone)
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < _LARGEST:
        raise ValueError(f"{str(value)[:_SHOWN]!r} is not a time")
    per_second = next((count for end, count in _UNITS if abs(value) < end), _NANOSECONDS)
    return round(value * 1_000 if per_second == 1 else value // (per_second // 1_000))


def _milliseconds_of_text(text: str, zone: tzinfo) -> int:
    if _NUMBER.fullmatch(text):
        return parse_moment(float(text) if "." in text else int(text), zone)
    regular, leap_seconds = _LEAP_SECOND.subn(":59", text)
    for parse in (_iso, parsedate_to_datetime, _spoken):
        try:
            return _milliseconds(parse(regular), zone) + leap_seconds * 1_000
        except (ValueError, OverflowError):
            continue
    raise ValueError(f"{text[:_SHOWN]!r} is not a time")


def _iso(text: str) -> datetime:
    regular = _ZONE_AFTER_SPACE.sub(lambda zone: "Z" if zone[0].strip() else "", text)
    regular = _SLASHES.sub(lambda day: f"{day[1]}-{int(day[2]):02}-{int(day[3]):02}", regular)
    return datetime.fromisoformat(regular)


def _milliseconds(moment: datetime, zone: tzinfo) -> int:
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=zone)
    return round(zoned.timestamp() * 1000)


def parse_ago(text: str, now_ms: int) -> int | None:
    """Return the time (ms) of ``90s``, ``30m``, ``2h``, ``7d`` or ``3w`` ago, else None."""
    match = _AGO.fullmatch(text.strip())
    if match is None:
        return None
    return max(1, now_ms - round(float(match[1]) * _LENGTHS[match[2]] * 1000))
