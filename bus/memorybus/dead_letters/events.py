"""Finds the event of a dead letter in the history: in the log or in the archive (G6, G7)."""

import contextlib
from collections.abc import Mapping

import msgspec

from memorybus.dead_letters.records import DeadLetter
from memorybus.errors import ArchiveError
from memorybus.events import Omission, Omitted
from memorybus.history.history import History
from memorybus.log.entry import LoggedEvent, previous_entry_id

_CAN_ONLY_BE_DISCARDED = "it can only be discarded"

EVENT_GONE = f"the history has the event no more: {_CAN_ONLY_BE_DISCARDED}"

_LEFT_OUT: Mapping[Omission, str] = {
    "volatile": (
        "the event was volatile, and the archive does not keep what it said: "
        f"{_CAN_ONLY_BE_DISCARDED}"
    ),
    "retention": (
        f"the event is older than the archive keeps what was said: {_CAN_ONLY_BE_DISCARDED}"
    ),
    "forgotten": f"the event is forgotten, as somebody asked for: {_CAN_ONLY_BE_DISCARDED}",
}


class LetterEvent(msgspec.Struct, frozen=True):
    """The event of a dead letter, as it was published.

    Attributes:
        event: the event; None if it is not available.
        why: why it is not available; empty otherwise.
    """

    event: LoggedEvent | None
    why: str = ""


def published_event(
    history: History, partition: int, letter: DeadLetter, *, shown: bool = False
) -> LetterEvent:
    """Return the event of a dead letter; a forgotten event is not returned.

    Args:
        history: the history that has the event.
        partition: the partition of the event.
        letter: the dead letter.
        shown: whether people will see the event. If so, it is not returned while the tombstones
            cannot be read. If not, an event that is still in the log is returned even then, as
            lanes get it, too.

    Raises:
        LogUnavailable: Redis does not answer.
    """
    try:
        return _find_event(history, partition, letter, shown=shown)
    except ArchiveError as error:
        return LetterEvent(None, f"the event cannot be read now: {error}")


def _find_event(
    history: History, partition: int, letter: DeadLetter, *, shown: bool
) -> LetterEvent:
    if not letter.n:
        return LetterEvent(None, f"memorybus did not write this record: {_CAN_ONLY_BE_DISCARDED}")
    with contextlib.nullcontext() if shown else contextlib.suppress(ArchiveError):
        history.forgotten_queries()  # from here on, `read` honours the tombstones
    for event in history.read(
        partition, previous_entry_id(letter.entry), 1, after_n=letter.n - 1
    ).events:
        if event.position.entry == letter.entry:
            return _check_event(event, letter)
    return LetterEvent(None, EVENT_GONE)


def _check_event(event: LoggedEvent, letter: DeadLetter) -> LetterEvent:
    what = event.envelope.event
    if isinstance(what, Omitted):
        return LetterEvent(None, _LEFT_OUT[what.why])
    return (
        LetterEvent(event)
        if event.envelope.id == letter.event_id
        else LetterEvent(None, EVENT_GONE)
    )
