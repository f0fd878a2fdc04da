"""``memorybus events``: the log, listed or followed."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import App, Parameter

from memorybus.events import EVENT_TYPES, UnknownEvent
from memorybus.surfaces.cli.options import (
    DEFAULT,
    LOOK,
    Common,
    a_time,
    absolute,
    not_negative,
    positive,
)
from memorybus.surfaces.views.events import as_json, event_line, event_text, said_json
from memorybus.surfaces.views.output import Output
from memorybus.text.times import parse_timestamp

if TYPE_CHECKING:
    from memorybus.log.entry import LoggedEvent
    from memorybus.log.stream import EventLog
    from memorybus.operations import journal

_ID = re.compile(r"[0-9a-fA-F]{32}")
TYPE_NAMES = (*(kind.__name__ for kind in EVENT_TYPES), UnknownEvent.__name__)


def known_type(_: Any, given: str | None) -> None:
    """Validate the name of an event type, in any case, if one is given."""
    names = {name.lower(): name for name in TYPE_NAMES}
    if given is None or given.lower() in names:
        return
    near = get_close_matches(given.lower(), names, n=2)
    if near:
        raise ValueError(f"Did you mean {' or '.join(names[name] for name in near)}?")
    raise ValueError(f"Event types: {', '.join(TYPE_NAMES)}.")


def known_id(_: Any, given: str) -> None:
    """Validate the id of an event: 32 hexadecimal digits."""
    if not _ID.fullmatch(given):
        raise ValueError("An event's id is 32 hexadecimal digits, as `events ls --json` shows it.")


Session = Annotated[
    str | None, Parameter(help="Only sessions of this id, or this lineage's root: everybody's.")
]
Type = Annotated[
    str | None,
    Parameter(help="Only events of this type, e.g. TurnCompleted.", validator=known_type),
]
Since = Annotated[
    str | None,
    Parameter(
        help="Only what happened since then: ISO 8601, or 2h, 7d.",
        validator=a_time,
        converter=absolute,
    ),
]
Until = Annotated[
    str | None,
    Parameter(
        help="Only what happened before: ISO 8601, or 2h, 7d.", validator=a_time, converter=absolute
    ),
]
All = Annotated[
    bool, Parameter(name="--all", negative="", help="Show what `doctor` published, too.")
]


def register(app: App) -> None:
    """Add this group's commands."""
    events = App(name="events", help="The log: what was published, in order.", group=LOOK)
    events.command(run_events_ls, name="ls")
    events.command(run_events_tail, name="tail")
    events.command(run_events_get, name="get")
    events.command(run_events_search, name="search")
    app.command(events)


def run_events_ls(
    *,
    session: Session = None,
    type: Type = None,  # noqa: A002  the option's name
    limit: Annotated[int, Parameter(help="The newest so many.", validator=positive)] = 50,
    show_all: All = False,
    common: Common = DEFAULT,
) -> int:
    """List the newest events, newest last; exit code 1 if a part of the past cannot be read.

    For example:

    - `memorybus events ls --type MemoryWritten --limit 10`
    - `memorybus events ls --session chat-17 --json`
    """
    from memorybus.operations import journal

    output, settings = common.output(), common.settings()
    wanted = journal.EventSelection(session, type, canaries=show_all)
    unread: list[str] = []
    history = journal.open_history(settings)
    found = journal.newest_events(history, wanted, limit, unread=unread)
    tell_unread(output, unread)
    if output.json:
        output.result([as_json(event) for event in found])
    else:
        for event in found:
            output.show(event_line(event.envelope))
        if not found and not unread:
            output.note("no such events" if session or type else "no events yet")
    return 1 if unread else 0


def run_events_tail(
    *,
    session: Session = None,
    type: Type = None,  # noqa: A002  the option's name
    limit: Annotated[
        int, Parameter(help="Begin with the newest so many; 0 for none.", validator=not_negative)
    ] = 10,
    show_all: All = False,
    common: Common = DEFAULT,
) -> int:
    """Show the newest events and follow the log until Ctrl-C; --json prints one line each.

    For example:

    - `memorybus events tail --type TurnCompleted`
    - `memorybus events tail --limit 0 --json | jq .event`
    """
    from memorybus.operations import journal

    output, settings = common.output(), common.settings()
    wanted = journal.EventSelection(session, type, canaries=show_all)
    history = journal.open_history(settings)
    heads = history.log.heads()
    unread: list[str] = []
    found = journal.newest_events(history, wanted, limit, heads, unread)
    tell_unread(output, unread)
    for event in _chained(found, history.log, journal.ReadPositions.behind_heads(heads), wanted):
        if output.json:
            output.json_line(as_json(event))
        else:
            output.show(event_line(event.envelope))
    return 0


def run_events_get(
    event: Annotated[str, Parameter(help="Its id.", validator=known_id)],
    /,
    *,
    common: Common = DEFAULT,
) -> int:
    """Show one event whole, and what became of it at each provider.

    When and where it happened, whose it is, what it says, where it lies; then whether each provider
    has applied it, how much is before it, or why it is parked.

    For example:

    - `memorybus events get 0198f2c45b1e7a3c9d0e1f2a3b4c5d6e`
    - `memorybus events get 0198f2c45b1e7a3c9d0e1f2a3b4c5d6e --json | jq .event`
    """
    from memorybus.operations import journal
    from memorybus.operations.dead_letters.acts import open_dead_letters
    from memorybus.operations.events.story import story_of
    from memorybus.operations.stores import Stores
    from memorybus.surfaces.views.found import fates_text, lies_at

    output, settings = common.output(), common.settings()
    with Stores(settings) as stores, closing(open_dead_letters(settings)) as desk:
        found = journal.event_by_id(stores.history, event.lower(), [])
        story = story_of(stores, desk, found)
    if output.json:
        more = {"lies": story.where, "outcomes": story.fates}
        output.result(as_json(found) | msgspec.to_builtins(more))
    else:
        said = said_json(found.envelope.event)
        output.show(event_text(found.envelope, found.position, lies_at(story.where), said))
        output.show(fates_text(story.fates))
    return 0


def run_events_search(
    *words: str,
    session: Annotated[str | None, Parameter(help="Only in this session: everybody's.")] = None,
    user: Annotated[str | None, Parameter(help="Only this person's.")] = None,
    type: Type = None,  # noqa: A002  the option's name
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, Parameter(help="A page: at most so many.", validator=positive)] = 20,
    before: Annotated[
        str | None, Parameter(help="Go on where a search stopped; it says this at its end.")
    ] = None,
    show_all: All = False,
    common: Common = DEFAULT,
) -> int:
    """Search events, the newest first: all words have to be in what an event says.

    Several words in quotes are a phrase. It reads back until a page is found: the newest events, a
    session, or the last hours cost the same however long the history is; words that nobody said
    cost all of it. Ctrl-C stops it, shows what it found, and how to go on. Exit code 1 if a part
    of the past cannot be read.

    For example:

    - `memorybus events search bicycle --user ann --since 7d`
    - `memorybus events search "sea glass" --type TurnCompleted --json | jq .events`
    - `memorybus events search --session chat-17`
    """
    from memorybus.operations.events.search import SearchRequest, parse_mark
    from memorybus.surfaces.cli.events_search import EventsSearch

    wanted = SearchRequest(
        words=words,
        session=session,
        user=user,
        type=type,
        since=None if since is None else parse_timestamp(since),
        until=None if until is None else parse_timestamp(until),
        canaries=show_all,
    )
    return EventsSearch(common, wanted, parse_mark(before)).run(limit)


def _chained(
    found: "Iterable[LoggedEvent]",
    log: "EventLog",
    places: "journal.ReadPositions",
    wanted: "journal.EventSelection",
) -> "Iterator[LoggedEvent]":
    from memorybus.operations import journal

    yield from found
    yield from (event for event in journal.follow_log(log, places) if wanted.wants(event))


def tell_unread(output: Output, unread: Sequence[str]) -> None:
    """Print what of the past could not be read; the rest is shown."""
    for why in unread:
        output.note(f"a part of the past is left out: {why}", "yellow")
