"""Commands that look: status, events, sessions. They change nothing."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter
from rich.console import Group
from rich.live import Live

from memorybus.clock import SYSTEM
from memorybus.errors import LogUnavailable
from memorybus.lineage import fold
from memorybus.links import connect_redis
from memorybus.log import EventLog, LoggedEvent
from memorybus.monitor import read_status, spool_status
from memorybus.settings import Settings
from memorybus.surfaces import journal, tree
from memorybus.surfaces.cli.options import DEFAULT, LOOK, Common
from memorybus.surfaces.output import Output
from memorybus.surfaces.render import event_line, event_name, status_tables
from memorybus.surfaces.transcripts.times import iso

WATCH_EVERY = 1.0

Session = Annotated[str | None, Parameter(help="Only this session, or this lineage's root.")]
Type = Annotated[str | None, Parameter(help="Only events of this type, e.g. TurnCompleted.")]


def register(app: App) -> None:
    """Add this group's commands."""
    app.command(run_status, name="status", group=LOOK)
    events = App(name="events", help="The log: what was published, in order.", group=LOOK)
    events.command(run_events_ls, name="ls")
    events.command(run_events_tail, name="tail")
    app.command(events)
    sessions = App(name="sessions", help="Sessions and how they came from each other.", group=LOOK)
    sessions.command(run_sessions_tree, name="tree")
    app.command(sessions)


def run_status(
    *,
    watch: Annotated[bool, Parameter(negative="", help="Show it anew every second.")] = False,
    common: Common = DEFAULT,
) -> int:
    """Show Redis, the spool, the providers' backlog, the workers and the jobs.

    For example:

    - `memorybus status --watch`
    - `memorybus status --json | jq .providers`
    """
    output, settings = common.output(), common.settings()
    try:
        if watch:
            _watch(output, settings)
        status = _status(settings)
    except LogUnavailable:
        spool = spool_status(settings)
        output.note(f"{spool.events} events ({spool.bytes} bytes) are spooled on this host")
        raise
    if output.json:
        output.result(status)
    else:
        for part in status_tables(status):
            output.show(part)
    return 0


def _status(settings: Settings) -> dict[str, Any]:
    return dict(msgspec.to_builtins(read_status(settings)))


def _watch(output: Output, settings: Settings) -> None:
    """Show the status until interrupted; with ``--json`` one line each time."""
    if output.json:
        while True:
            output.json_line(_status(settings))
            SYSTEM.sleep(WATCH_EVERY)
    with Live(console=output.out, auto_refresh=False) as live:
        while True:
            live.update(Group(*status_tables(_status(settings))), refresh=True)
            SYSTEM.sleep(WATCH_EVERY)


def run_events_ls(
    *,
    session: Session = None,
    type: Type = None,  # noqa: A002  the option's name
    limit: Annotated[int, Parameter(help="The newest so many.")] = 50,
    common: Common = DEFAULT,
) -> int:
    """List the newest events, newest last.

    For example:

    - `memorybus events ls --type MemoryWritten --limit 10`
    """
    output, settings = common.output(), common.settings()
    wanted = journal.Filter(session, type)
    events = journal.everything(_log(settings), settings.partitions)
    found = journal.last((event for event in events if wanted.wants(event)), max(limit, 0))
    if output.json:
        output.result([as_json(event) for event in found])
    else:
        _show(output, found)
    return 0


def run_events_tail(
    *,
    session: Session = None,
    type: Type = None,  # noqa: A002  the option's name
    limit: Annotated[int, Parameter(help="Begin with the newest so many.")] = 10,
    common: Common = DEFAULT,
) -> int:
    """Show the newest events and follow the log until Ctrl-C; --json prints one line each."""
    output, settings = common.output(), common.settings()
    log, wanted = _log(settings), journal.Filter(session, type)
    places = journal.Places(settings.partitions)
    seen = (event for event in places.noted(journal.everything(log, settings.partitions)))
    found = journal.last((event for event in seen if wanted.wants(event)), max(limit, 0))
    for event in _chained(found, log, places, wanted):
        if output.json:
            output.json_line(as_json(event))
        else:
            _show(output, [event])
    return 0


def _chained(
    found: list[LoggedEvent], log: EventLog, places: journal.Places, wanted: journal.Filter
) -> Iterator[LoggedEvent]:
    yield from found
    yield from (event for event in journal.follow(log, places) if wanted.wants(event))


def run_sessions_tree(
    session: Annotated[str | None, Parameter(help="Only the tree of this session.")] = None,
    /,
    *,
    common: Common = DEFAULT,
) -> int:
    """Show sessions as a tree: which came from which, and why.

    For example:

    - `memorybus sessions tree`
    - `memorybus sessions tree chat-17 --json`
    """
    output, settings = common.output(), common.settings()
    events = journal.everything(_log(settings), settings.partitions)
    found = tree.rows(fold(event.envelope for event in events), session)
    if output.json:
        output.result([tree.as_json(row) for row in found])
    else:
        for row in found:
            output.show(tree.drawn(row))
    return 0 if found or session is None else _no_such_session(output, session)


def _no_such_session(output: Output, session: str) -> int:
    output.note(f"no session {session!r} in the log; see: memorybus sessions tree", "red")
    return 1


def _log(settings: Settings) -> EventLog:
    """Return the log, checked: another partition count would show half of it."""
    log = EventLog(connect_redis(settings), settings)
    log.open()
    return log


def as_json(event: LoggedEvent) -> dict[str, Any]:
    """Return an event as ``--json`` shows it; bytes of unknown events as hex."""
    envelope = msgspec.to_builtins(event.envelope, builtin_types=(bytes,))
    body = {n: v.hex() if isinstance(v, bytes) else v for n, v in envelope["event"].items()}
    return {
        "position": msgspec.to_builtins(event.position),
        "id": event.envelope.id,
        "key": event.envelope.key,
        "type": event_name(event.envelope.event),
        "at": iso(event.envelope.at),
        "session": envelope["session"],
        "scope": envelope.get("scope", {}),
        "event": body,
    }


def _show(output: Output, events: list[LoggedEvent]) -> None:
    for event in events:
        output.show(event_line(event.envelope))
