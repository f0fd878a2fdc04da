"""Reads moments of the history as people write them: a time, a position or an event's id."""

import re

from memorybus.errors import ConfigError
from memorybus.history.history import History
from memorybus.text.display import iso
from memorybus.text.times import parse_timestamp

_PLACE = re.compile(r"p\d{2,}:\d+|[0-9a-f]{32}")


def moment_of(text: str) -> int | str:
    """Return a moment as `History.places` expects it.

    Args:
        text: ISO 8601 (UTC if it names no zone; a date is its first moment), ``p07:1234`` or an
            event's id.

    Raises:
        ConfigError: the text is none of these.
    """
    if _PLACE.fullmatch(text):
        return text
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise ConfigError(
            f"{text!r} is not a time, position or event: give an ISO time (2026-05-31T18:00), a "
            "position (p07:1234) or an event's id"
        ) from error


def moment_text(kept: str) -> str:
    """Return a moment for people: a time in UTC, a position or an id unchanged.

    Args:
        kept: the moment as a record has it: milliseconds, ``p07:1234`` or an event's id.
    """
    return kept if _PLACE.fullmatch(kept) else iso(int(kept)) or kept


def numbers_upto(history: History, text: str) -> dict[int, int]:
    """Return the last number of each partition up to and including a moment.

    Raises:
        ConfigError: the text cannot be read, or the history does not hold the moment.
    """
    return history.places(moment_of(text))


def numbers_before(history: History, text: str) -> dict[int, int]:
    """Return the last number of each partition before a moment.

    Raises:
        ConfigError: the text cannot be read, or the history does not hold the moment.
    """
    return history.places(moment_of(text), inclusive=False)
