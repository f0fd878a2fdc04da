"""Moments of the history as people write them: a time, a position, an event's id."""

import re

from memorybus.errors import ConfigError
from memorybus.history.history import History
from memorybus.text.display import iso
from memorybus.text.times import parse_timestamp

_PLACE = re.compile(r"p\d{2,}:\d+|[0-9a-f]{32}")


def moment_of(text: str) -> int | str:
    """Return a moment as `History.places` takes it.

    Args:
        text: ISO 8601 (UTC if it names no zone; a date is its first moment), ``p07:1234`` or an
            event's id.

    Raises:
        ConfigError: it is none of them.
    """
    if _PLACE.fullmatch(text):
        return text
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise ConfigError(
            f"{text!r} is no moment: give an ISO time (2026-05-31T18:00), a position (p07:1234) or "
            f"an event's id"
        ) from error


def moment_text(kept: str) -> str:
    """Return a moment as people read it: a time in UTC, all else as it was written.

    Args:
        kept: as a record keeps it: milliseconds, ``p07:1234`` or an event's id.
    """
    return kept if _PLACE.fullmatch(kept) else iso(int(kept)) or kept


def numbers_upto(history: History, text: str) -> dict[int, int]:
    """Return the last number of each partition up to a moment, with it.

    Raises:
        ConfigError: nobody can read it, or the history does not have it.
    """
    return history.places(moment_of(text))


def numbers_before(history: History, text: str) -> dict[int, int]:
    """Return the last number of each partition before a moment.

    Raises:
        ConfigError: nobody can read it, or the history does not have it.
    """
    return history.places(moment_of(text), inclusive=False)
