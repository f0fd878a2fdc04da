"""``memorybus events``: list, follow and search the log, and show one event."""

import re
from collections.abc import Iterator
from contextlib import closing
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from memorybus.events import EVENT_TYPES, UnknownEvent
from memorybus.text.times import parse_timestamp

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import (
    DEFAULT,
    Common,
    check_time,
    not_negative,
    positive,
    to_absolute_time,
)
from memorybus_console.result import Presentation, Prints, Remark, unread_notes

if TYPE_CHECKING:
    from memorybus_console.operations.events.story import PromptShown, PromptWithout
    from memorybus_console.views.events import EventsFound, EventWhole, PlacedEvent

_ID = re.compile(r"[0-9a-fA-F]{32}")
TYPE_NAMES = (*(kind.__name__ for kind in EVENT_TYPES), UnknownEvent.__name__)


def check_event_type(_: Any, given: str | None) -> None:
    """Validate the name of an event type, in any case, if one is given."""
    names = {name.lower(): name for name in TYPE_NAMES}
    if given is None or given.lower() in names:
        return
    near = get_close_matches(given.lower(), names, n=2)
    if near:
        raise ValueError(f"Did you mean {' or '.join(names[name] for name in near)}?")
    raise ValueError(f"Event types: {', '.join(TYPE_NAMES)}.")


def check_event_id(_: Any, given: str) -> None:
    """Validate the id of an event: 32 hexadecimal digits."""
    if not _ID.fullmatch(given):
        raise ValueError("An event's id is 32 hexadecimal digits, as `events ls --json` shows it.")


def check_event_ids(_: Any, given: tuple[str, ...]) -> None:
    """Validate the ids of events."""
    for each in given:
        check_event_id(_, each)


EventSessionOption = Annotated[
    str | None,
    Parameter(help="Only this session id, or all with this lineage root; of every user."),
]
EventTypeOption = Annotated[
    str | None,
    Parameter(help="Only events of this type, e.g. TurnCompleted.", validator=check_event_type),
]
EventsSinceOption = Annotated[
    str | None,
    Parameter(
        help="Only what happened since then: ISO 8601, or 2h, 7d.",
        validator=check_time,
        converter=to_absolute_time,
    ),
]
EventsUntilOption = Annotated[
    str | None,
    Parameter(
        help="Only what happened before: ISO 8601, or 2h, 7d.",
        validator=check_time,
        converter=to_absolute_time,
    ),
]
AllEventsOption = Annotated[
    bool, Parameter(name="--all", negative="", help="Show what `doctor` published, too.")
]


@shown
def run_events_ls(
    *,
    session: EventSessionOption = None,
    type: EventTypeOption = None,  # noqa: A002  the option's name
    limit: Annotated[
        int, Parameter(help="At most this many, the newest.", validator=positive)
    ] = 50,
    show_all: AllEventsOption = False,
    common: Common = DEFAULT,
) -> "Presentation[list[PlacedEvent]]":
    """List the newest events, newest last; exit code 1 if a part of the past cannot be read.

    For example:

    - `memorybus events ls --type MemoryWritten --limit 10`
    - `memorybus events ls --session chat-17 --json`
    """
    from memorybus_console.operations import journal
    from memorybus_console.views.events import event_line, placed

    selection = journal.EventSelection(session, type, canaries=show_all)
    unread: list[str] = []
    history = journal.open_history(common.settings())
    events = journal.newest_events(history, selection, limit, unread=unread)
    nothing = Remark("no such events" if session or type else "no events yet")
    return Presentation(
        list(map(placed, events)),
        (event_line(event.envelope) for event in events),
        notes=[*unread_notes(unread), *([] if events or unread else [nothing])],
        code=int(bool(unread)),
    )


@shown
def run_events_tail(
    *,
    session: EventSessionOption = None,
    type: EventTypeOption = None,  # noqa: A002  the option's name
    limit: Annotated[
        int, Parameter(help="Begin with this many, the newest; 0 for none.", validator=not_negative)
    ] = 10,
    show_all: AllEventsOption = False,
    common: Common = DEFAULT,
) -> "Iterator[Presentation[PlacedEvent]]":
    """Show the newest events and follow the log until Ctrl-C; --json prints one line each.

    For example:

    - `memorybus events tail --type TurnCompleted`
    - `memorybus events tail --limit 0 --json | jq .event`
    """
    from memorybus_console.operations import journal
    from memorybus_console.views.events import event_line, placed

    selection = journal.EventSelection(session, type, canaries=show_all)
    history = journal.open_history(common.settings())
    heads = history.log.heads()
    unread: list[str] = []
    newest = journal.newest_events(history, selection, limit, heads, unread)
    common.output().note_unread(unread)
    places = journal.ReadPositions.behind_heads(heads)
    following = filter(selection.wants, journal.follow_log(history.log, places))
    for event in chain(newest, following):
        yield Presentation(placed(event), [event_line(event.envelope)])


@shown
def run_events_get(
    event: Annotated[str, Parameter(help="Its id.", validator=check_event_id)],
    /,
    *,
    show_block: Annotated[
        bool,
        Parameter(
            name="--shown",
            negative="",
            help="Show instead the memories that the turn's prompt was given, word for word; "
            "where they came from is on stderr.",
        ),
    ] = False,
    common: Common = DEFAULT,
) -> "Annotated[Presentation[EventWhole] | int, Prints(EventWhole | PromptShown)]":
    """Show one event whole, and what became of it at each provider.

    It shows the event's time, session, user, content and storage place; then, for each provider,
    whether it has applied the event, how many events are before it, or why it is parked.

    For example:

    - `memorybus events get 0198f2c45b1e7a3c9d0e1f2a3b4c5d6e`
    - `memorybus events get 0198f2c45b1e7a3c9d0e1f2a3b4c5d6e --json | jq .event`
    - `memorybus events get 0198f2c45b1e7a3c9d0e1f2a3b4c5d6e --shown`
    """
    if show_block:
        return _show_block(event, common)
    from memorybus_console.operations import journal
    from memorybus_console.operations.dead_letters import open_dead_letters
    from memorybus_console.operations.events.story import story_of
    from memorybus_console.operations.stores import Stores
    from memorybus_console.views.events import event_parts, whole

    settings = common.settings()
    with Stores(settings) as stores, closing(open_dead_letters(settings)) as desk:
        logged = journal.event_by_id(stores.history, event.lower(), [])
        story = whole(story_of(stores, desk, logged))
    return Presentation(story, event_parts(story))


def _show_block(event: str, common: Common) -> int:
    """Print the block of a turn's prompt as it was, and notes about its memories."""
    from memorybus_console.operations.events.story import shown_to
    from memorybus_console.operations.journal import event_by_id, open_history
    from memorybus_console.views.events import describe_shown

    history, output = open_history(common.settings()), common.output()
    with closing(history):
        prompt = shown_to(history, event_by_id(history, event.lower(), []))
    if output.json:
        output.result(prompt)
        return 0
    output.pipe_line(f"{prompt.block}\n".encode())
    for part in prompt.memories:
        events = ", ".join(part.events)
        output.note(f"{describe_shown(part)}, from the events: {events}")
    return 0


@shown
def run_whatif(
    turn: Annotated[str, Parameter(help="A turn's event id.", validator=check_event_id)],
    /,
    *,
    without: Annotated[
        tuple[str, ...],
        Parameter(
            name="--except",
            negative="",
            consume_multiple=True,
            validator=check_event_ids,
            help="The events whose memories are left out.",
        ),
    ],
    common: Common = DEFAULT,
) -> "Annotated[int, Prints(PromptWithout)]":
    """Show what a turn's prompt would have been given without some events.

    It is the recorded block without their memories. What would have stood in their place is not
    known. `memorybus events get TURN --shown` names the events of a block.

    For example:

    - `memorybus whatif 0198f2c45b1e7a3c9d0e1f2a3b4c5d6e --except 0198f2c40d2a7b1c8e9f0a1b2c3d4e5f`
    """
    from memorybus_console.operations.events.story import without_events
    from memorybus_console.operations.journal import event_by_id, open_history

    history, output = open_history(common.settings()), common.output()
    with closing(history):
        logged = event_by_id(history, turn.lower(), [])
        prompt = without_events(history, logged, {each.lower() for each in without})
    if output.json:
        output.result(prompt)
        return 0
    output.pipe_line(f"{prompt.block}\n".encode() if prompt.block else b"")
    output.note(f"memories left out: {prompt.removed}")
    return 0


@shown
def run_events_search(
    *words: str,
    session: Annotated[
        str | None, Parameter(help="Only sessions of this id, of every user.")
    ] = None,
    user: Annotated[str | None, Parameter(help="Only this person's.")] = None,
    type: EventTypeOption = None,  # noqa: A002  the option's name
    since: EventsSinceOption = None,
    until: EventsUntilOption = None,
    limit: Annotated[int, Parameter(help="At most this many on a page.", validator=positive)] = 20,
    before: Annotated[
        str | None,
        Parameter(help="Continue a search: the value in its last line."),
    ] = None,
    show_all: AllEventsOption = False,
    common: Common = DEFAULT,
) -> "Presentation[EventsFound]":
    """Search events, the newest first: an event is found if its text has all the words.

    Several words in quotes are a phrase. The search reads backwards until a page is full. The
    newest events, a session, or the last hours cost the same however long the history is; words
    that no event has make it read the whole history. Ctrl-C stops it, shows what it found, and how
    to continue. Exit code 1 if a part of the past cannot be read.

    For example:

    - `memorybus events search bicycle --user ann --since 7d`
    - `memorybus events search "sea glass" --type TurnCompleted --json | jq .events`
    - `memorybus events search --session chat-17`
    """
    from memorybus_console.cli.events.events_search import search_page
    from memorybus_console.operations.events.search import SearchRequest, parse_mark

    request = SearchRequest(
        words=words,
        session=session,
        user=user,
        type=type,
        since=None if since is None else parse_timestamp(since),
        until=None if until is None else parse_timestamp(until),
        canaries=show_all,
    )
    return search_page(common, request, parse_mark(before), limit)
