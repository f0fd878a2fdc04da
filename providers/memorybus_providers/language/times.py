"""Reads the times that a question names, as spans of milliseconds; pure.

Days begin at midnight in the person's time zone, and weeks on Monday. Future times ("next week")
are not read, since nothing was said then. A month or a date without a year may be of any year, so
it stands for the last `YEARS_OF_A_MONTH` years.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from memorybus_providers.language.time_words import (
    DAYS_AGO,
    HOURS,
    MONTH_NUMBERS,
    NUMBERS,
    TELLING,
    UNITS,
    WEEKDAY_NUMBERS,
    time_patterns,
)
from memorybus_providers.language.words import folded

YEARS_OF_A_MONTH = 8  # how many years a month without a year stands for: this one and those before

MAX_READ_CHARS = 1_000  # the most characters of a question in which times are read (G10)

MOST_TIMES = 4  # the most times of a question that are read (G10); each may be several periods

_HOUR_MS = 3_600_000
DAY_MS = 24 * _HOUR_MS  # one day

_EPOCH = date(1970, 1, 1)
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_NOW = 4_102_444_800_000  # the year 2100: later ones are a mistake, or "forever"
_WORD = re.compile(r"\w+")
_PIECE = re.compile(r"\w+|\W+")
_SPACES = re.compile(r"\s+")
_ARTICLES = frozenset({"a", "an", "of"})


class Period(msgspec.Struct, frozen=True, order=True):
    """A span of time from `start` to just before `end`, milliseconds."""

    start: int
    end: int

    @property
    def is_a_day(self) -> bool:
        """Whether it is one day, in whatever time zone."""
        return self.end - self.start < 2 * DAY_MS

    def holds(self, at: int) -> bool:
        """Return whether a time is in this span."""
        return self.start <= at < self.end


class NamedTimes(msgspec.Struct, frozen=True):
    """The times that a question names."""

    periods: tuple[Period, ...] = ()  # the spans of these times; empty if it names none
    months: frozenset[int] = frozenset()  # the months of the year that are named, 1 to 12
    years: frozenset[int] = frozenset()  # the years that are named, with or without a month
    rest: str = ""  # the question without the words that name times
    dates: str = ""  # the words that name days of a month ("April 17"), which a fact may contain


class _Read(NamedTuple):
    """The meaning of one expression: its periods, and the month and year that it names."""

    periods: tuple[Period, ...]
    month: int | None = None
    year: int | None = None


def read_times(text: str, now: int, languages: Collection[str], zone: tzinfo = UTC) -> NamedTimes:
    """Return the times that a question names; any text can be a question.

    Args:
        now: when it is asked, milliseconds.
        languages: the languages of which it may be.
        zone: the time zone in which days begin.
    """
    if not _may_name_a_time(text[:MAX_READ_CHARS]):
        return NamedTimes(rest=text)
    today = _day_of(now, zone)
    head = unicodedata.normalize("NFC", text[:MAX_READ_CHARS])
    pieces = _PIECE.findall(head)
    plain = [_plain(piece) for piece in pieces]
    found = list(_expressions("".join(plain), today, languages))[:MOST_TIMES]
    if not found:
        return NamedTimes(rest=text)
    rest = _without(pieces, plain, [span for span, _ in found])
    text_read = "".join(plain)
    days = [span for span, one in found if one.month and one.periods[0].is_a_day]
    read = [one for _, one in found]
    return NamedTimes(
        tuple(dict.fromkeys(_in_zone(period, zone) for one in read for period in one.periods)),
        frozenset(one.month for one in read if one.month is not None),
        frozenset(one.year for one in read if one.year is not None),
        rest + text[MAX_READ_CHARS:],
        " ".join(text_read[start:end] for start, end in days),
    )


def _may_name_a_time(text: str) -> bool:
    """Return whether a text has a digit or a word of an expression; most texts have none, and this
    is a fast test.
    """
    words = _WORD.findall(folded(text))
    return not TELLING.isdisjoint(words) or any(word[0].isdecimal() for word in words)


def _plain(piece: str) -> str:
    return folded(piece).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def _day_of(now: int, zone: tzinfo) -> date:
    return datetime.fromtimestamp(min(max(now, 0), _LAST_NOW) / 1000, zone).date()


def _in_zone(period: Period, zone: tzinfo) -> Period:
    """Return the period with the same wall-clock times in a time zone instead of UTC."""
    return Period(_shown_at(period.start, zone), _shown_at(period.end, zone))


def _shown_at(wall: int, zone: tzinfo) -> int:
    shown = _BEGIN + timedelta(milliseconds=wall)
    return (shown.replace(tzinfo=zone) - _BEGIN) // timedelta(milliseconds=1)


def _expressions(
    text: str, today: date, languages: Collection[str]
) -> Iterator[tuple[tuple[int, int], _Read]]:
    """Yield the span of each expression and its meaning; no two expressions overlap."""
    for language, patterns in time_patterns().items():
        if language and language not in languages:
            continue
        for kind, pattern in patterns:
            for match in list(pattern.finditer(text)):
                read = _KINDS[kind](match.groupdict(), today)
                if read is not None:
                    yield match.span(), read
                    start, end = match.span()
                    text = text[:start] + "\0" * (end - start) + text[end:]


def _without(pieces: list[str], plain: list[str], spans: list[tuple[int, int]]) -> str:
    """Return the pieces whose plain form lies outside of all spans."""
    kept = []
    at = 0
    for piece, read in zip(pieces, plain, strict=True):
        end = at + len(read)
        if not any(start < end and at < stop for start, stop in spans) or not read:
            kept.append(piece)
        elif not kept or kept[-1] != " ":
            kept.append(" ")
        at = end
    return "".join(kept)


# -- the meaning of each kind of expression ---------------------------------------------------

_Groups = Mapping[str, str | None]


def _named_day(said: _Groups, today: date) -> _Read:
    return _days(today - timedelta(DAYS_AGO[_name(said)]))


def _part_of_day(said: _Groups, today: date) -> _Read:
    first, last = HOURS[_name(said)]
    midnight = _ms(today)
    return _Read((Period(midnight + first * _HOUR_MS, midnight + last * _HOUR_MS),))


def _ago(said: _Groups, today: date) -> _Read | None:
    """Read "3 weeks ago": for days that day, for weeks the week around it, else a month or year."""
    number, unit = _number(said), UNITS[said["unit"] or ""]
    if unit == "year" and number >= today.year - _EPOCH.year:
        return None
    match unit:
        case "day":
            return _days(today - timedelta(number))
        case "week":
            return _days(today - timedelta(7 * number + 3), 7)
        case "month":
            return _Read((_month(*_months_before(today, number)),))
        case _:
            return _Read((_year(today.year - number),))


def _past(said: _Groups, today: date) -> _Read | None:
    """Read "in the last 3 weeks": that many days before today, and today."""
    number, unit = _number(said), UNITS[said["unit"] or ""]
    if unit == "year" and number >= today.year - _EPOCH.year:
        return None
    days = {"day": 1, "week": 7, "month": 31, "year": 366}[unit] * number
    return _days(today - timedelta(days), days + 1)


def _this(said: _Groups, today: date) -> _Read:
    return _Read((_calendar(UNITS[said["unit"] or ""], today, 0),))


def _last(said: _Groups, today: date) -> _Read:
    return _Read((_calendar(UNITS[said["unit"] or ""], today, 1),))


def _calendar(unit: str, today: date, before: int) -> Period:
    """Return the week, weekend, month or year of a day, or the one that was `before` units ago."""
    monday = today - timedelta(today.weekday() + 7 * before)
    match unit:
        case "week":
            return _days(monday, 7).periods[0]
        case "weekend":
            return _days(monday + timedelta(5), 2).periods[0]
        case "month":
            return _month(*_months_before(today, before))
        case _:
            return _year(today.year - before)


def _weekday(said: _Groups, today: date) -> _Read:
    """Read a day of the week: the last one before today."""
    back = (today.weekday() - WEEKDAY_NUMBERS[said["weekday"] or ""] - 1) % 7 + 1
    return _days(today - timedelta(back))


def _date(said: _Groups, today: date) -> _Read | None:
    month, day = _month_number(said), int(said["day"] or 0)
    year = said["year"]
    years = [int(year)] if year else range(today.year, today.year - YEARS_OF_A_MONTH, -1)
    dates = [found for one in years if (found := _valid(one, month, day))]
    if not dates:
        return None
    periods = tuple(_days(one).periods[0] for one in dates)
    return _Read(periods, month, int(year) if year else None)


def _named_month(said: _Groups, today: date) -> _Read:
    month = _month_number(said)
    year = int(said.get("year") or 0) or None
    years = [year] if year else range(today.year, today.year - YEARS_OF_A_MONTH, -1)
    return _Read(tuple(_month(one, month) for one in years), month, year)


def _last_named_month(said: _Groups, today: date) -> _Read:
    month = _month_number(said)
    year = today.year if month < today.month else today.year - 1
    return _Read((_month(year, month),), month, year)


def _named_year(said: _Groups, today: date) -> _Read:
    year = int(said["year"] or today.year)
    return _Read((_year(year),), None, year)


_KINDS: Final[Mapping[str, Callable[[_Groups, date], _Read | None]]] = MappingProxyType(
    {
        "day": _named_day,
        "hours": _part_of_day,
        "ago": _ago,
        "past": _past,
        "this": _this,
        "last": _last,
        "weekday": _weekday,
        "date": _date,
        "month": _named_month,
        "last month": _last_named_month,
        "year": _named_year,
    }
)


# -- words and days ---------------------------------------------------------------------------


def _name(said: _Groups) -> str:
    return _SPACES.sub(" ", said["name"] or "")


def _number(said: _Groups) -> int:
    """Return a number that is written in digits or as a word; 1 if there is none."""
    written = said.get("n") or "one"
    if written.isdecimal():
        return int(written)
    words = written.split()
    return NUMBERS[next((word for word in words if word not in _ARTICLES), words[0])]


def _month_number(said: _Groups) -> int:
    written = said["month"] or ""
    return int(written) if written.isdecimal() else MONTH_NUMBERS[written]


def _valid(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _months_before(today: date, months: int) -> tuple[int, int]:
    """Return the year and the month that were `months` months before a day."""
    year, month = divmod(today.year * 12 + today.month - 1 - months, 12)
    return year, month + 1


def _days(first: date, days: int = 1) -> _Read:
    return _Read((Period(_ms(first), _ms(first) + days * DAY_MS),))


def _month(year: int, month: int) -> Period:
    following = date(year + month // 12, month % 12 + 1, 1)
    return Period(_ms(date(year, month, 1)), _ms(following))


def _year(year: int) -> Period:
    return Period(_ms(date(year, 1, 1)), _ms(date(year + 1, 1, 1)))


def _ms(day: date) -> int:
    return (day - _EPOCH).days * DAY_MS
