"""Shows people the events that a search found, and an event's outcome at each instance; pure."""

from collections.abc import Iterable
from typing import TypedDict

from memorybus.events import Envelope
from memorybus.history.history import Whereabouts
from memorybus.text.display import iso
from rich.text import Text

from memorybus_console.operations.events.story import Fate
from memorybus_console.operations.events.words import SearchWords
from memorybus_console.views.events import PlacedEvent, event_head, summary
from memorybus_console.views.safe import one_line

_COLOURS = {"applied": "green", "waiting": "yellow", "parked": "red", "discarded": "magenta"}
_NAME, _OUTCOME = 20, 10


class EventWhole(PlacedEvent):
    """An event, where it is stored, and its outcome at each instance."""

    lies: Whereabouts
    outcomes: list[Fate]


class EventsFound(TypedDict):
    """A page of a search; `next` is the value of --before for the next page."""

    events: list[PlacedEvent]
    next: str | None
    looked: int
    back_to: str | None
    unread: list[str]


def found_lines(envelope: Envelope, words: SearchWords, width: int) -> Text:
    """Return an event that was found as two lines: id, time and type; session, user and text.

    Args:
        envelope: the event.
        words: the words of the search; the text is shown from near the first one on.
        width: columns of the terminal; the id is never cut.
    """
    at = (iso(envelope.at) or "-")[:19].replace("T", " ")
    said = words.excerpt(envelope.event)
    where = one_line(" ".join(filter(None, (envelope.session.id, envelope.scope.user))), 36)
    room = max(20, width - len(where) - 4)
    return Text.assemble(
        (envelope.id, "bold"),
        (f"  {at}  ", "dim"),
        event_head(envelope.event, max(8, width - 55)),
        (f"\n  {where}  ", "dim"),
        one_line(said, room) if said else summary(envelope.event, room),
    )


def describe_location(where: Whereabouts) -> str:
    """Return in words where an event is stored."""
    sealed = f"sealed in {where.segment}" if where.segment else "sealed in the archive"
    parts = ("in the log" if where.in_log else "", sealed if where.sealed else "")
    return " and ".join(filter(None, parts)) or "nowhere any more"


def fates_text(fates: Iterable[Fate]) -> Text:
    """Return an event's outcomes, a line for each instance."""
    text = Text("outcome by provider\n", "bold")
    for fate in fates:
        name = f"{fate.instance} ({fate.role})" if fate.role else fate.instance
        text.append(f"{one_line(name):<{_NAME}} ")
        text.append(f"{fate.outcome:<{_OUTCOME}} ", _COLOURS.get(fate.outcome, "dim"))
        text.append(f"{one_line(describe_fate(fate))}".rstrip() + "\n")
    text.rstrip()
    return text


def describe_fate(fate: Fate) -> str:
    """Return the details of an outcome in words; "" if there are none."""
    parts = [fate.why]
    if fate.outcome == "waiting":
        parts.insert(0, f"{fate.before:,} before it" if fate.before else "next")
    if fate.outcome == "parked":
        tries = f"{fate.tries} {'try' if fate.tries == 1 else 'tries'}, " if fate.tries else ""
        parts.append(f"{tries}{fate.behind} behind")
    return "; ".join(filter(None, parts))
