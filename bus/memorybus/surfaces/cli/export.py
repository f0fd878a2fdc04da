"""``memorybus export``: a person's events, to take them elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from memorybus.surfaces.cli.options import DEFAULT, MEMORIES, Common, a_time, absolute
from memorybus.surfaces.cli.progress import note_on_interrupt
from memorybus.surfaces.views.output import Output
from memorybus.text.times import parse_timestamp

if TYPE_CHECKING:
    from memorybus.operations.export import ExportResult

_SHOWN = 20
"""Events that are left out and shown."""

_INTERRUPTED = "interrupted: nothing was written"


def _named(text: str) -> Parameter:
    """Return an option that may be repeated; an empty list of people would mean everybody."""
    return Parameter(help=text, negative="", consume_multiple=False)


def register(app: App) -> None:
    """Add this group's commands."""
    app.command(run_export, name="export", group=MEMORIES)


def run_export(
    file: Annotated[
        Path | None, Parameter(help="Where to; standard output if none is given.")
    ] = None,
    /,
    *,
    user: Annotated[list[str], _named("This person's events; again for several.")],
    agent: Annotated[list[str] | None, _named("Only this agent's; again.")] = None,
    workspace: Annotated[
        list[str] | None, _named("Only this workspace's, '' for none; again.")
    ] = None,
    since: Annotated[
        str | None,
        Parameter(
            help="Only what happened at this time or later: ISO 8601, UTC if no zone; or how long "
            "ago: 2h, 7d.",
            converter=absolute,
            validator=a_time,
        ),
    ] = None,
    until: Annotated[
        str | None,
        Parameter(
            help="Only what happened before this time.", converter=absolute, validator=a_time
        ),
    ] = None,
    provider: Annotated[
        str | None,
        Parameter(help="What this provider, or this instance of one, keeps, in place of events."),
    ] = None,
    common: Common = DEFAULT,
) -> int:
    """Write a person's events as JSON lines that `memorybus ingest` reads.

    They keep their ids, times and order, so that ingesting them twice adds nothing, in this log or
    another. FILE is written whole or not at all, and only you can read it. What is forgotten is not
    in it. Exit code 1 if a part of the past cannot be read. With --provider a worker tells what a
    provider keeps now, a memory a line, with its times and the events that brought it, if known.

    For example:

    - `memorybus export ana.jsonl --user ana`
    - `memorybus export --user ana --since 2026-01-01 | gzip > ana.jsonl.gz`
    - `memorybus export facts.jsonl --user ana --provider holographic`
    """
    from memorybus.operations import export
    from memorybus.query.query import Query

    output = common.output()
    if output.json and file is None:
        output.note("export: --json tells what was done; name a FILE for the events", "red")
        return 2
    if provider is not None and (since or until):
        output.note("export: --since and --until choose events; leave out --provider", "red")
        return 2
    query = Query(users=tuple(user), agents=tuple(agent or ()), workspaces=tuple(workspace or ()))
    done = export.ExportResult(file=str(file or ""), provider=provider or "")
    settings = common.settings()
    said = _INTERRUPTED if file is not None else "interrupted: this is not all of it"
    with note_on_interrupt(output, said), output.progress("lines") as bar:
        task = bar.add_task("export", total=None)

        def step() -> None:
            bar.advance(task)

        if provider is not None:
            lines = export.read_memories(settings, provider, query, done, step)
        else:
            first, end = (
                None if text is None else parse_timestamp(text) for text in (since, until)
            )
            found = export.read_events(settings, query, first, end, done.unread)
            lines = export.encode_events(found, done, step)
        if file is not None:
            export.write_atomically(file, lines)
        else:
            for line in lines:
                output.pipe_line(line)
    _show(output, done)
    return 0 if done.whole else 1


def _show(output: Output, done: "ExportResult") -> None:
    for why in done.unread:
        output.note(f"a part of the past is left out: {why}", "yellow")
    for known, why in list(done.left_out.items())[:_SHOWN]:
        output.note(f"left out: {known} ({why})", "red")
    if done.left_out_events > _SHOWN:
        output.note(f"{done.left_out_events} left out in all; --json names more", "red")
    if output.json:
        output.result(done)
    else:
        what = f"{done.memories} memories" if done.provider else f"{done.events} events"
        output.note(f"{what} written{f' to {done.file}' if done.file else ''}")
