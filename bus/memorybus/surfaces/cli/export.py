"""``memorybus export``: a person's events, to take them elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from memorybus.surfaces.cli.options import DEFAULT, MEMORIES, Common, a_time
from memorybus.surfaces.views.output import Output
from memorybus.text.times import stamp

if TYPE_CHECKING:
    from memorybus.operations.export import Exported

_SHOWN = 20
"""Events that are left out and shown."""


def register(app: App) -> None:
    """Add this group's commands."""
    app.command(run_export, name="export", group=MEMORIES)


def run_export(
    file: Annotated[
        Path | None, Parameter(help="Where to; standard output if none is given.")
    ] = None,
    /,
    *,
    user: Annotated[list[str], Parameter(help="This person's events; again for several.")],
    agent: Annotated[list[str] | None, Parameter(help="Only this agent's; again.")] = None,
    workspace: Annotated[
        list[str] | None, Parameter(help="Only this workspace's, '' for none; again.")
    ] = None,
    since: Annotated[
        str | None,
        Parameter(
            help="Only what happened at this time or later: ISO 8601, UTC if no zone.",
            validator=a_time,
        ),
    ] = None,
    until: Annotated[
        str | None, Parameter(help="Only what happened before this time.", validator=a_time)
    ] = None,
    common: Common = DEFAULT,
) -> int:
    """Write a person's events as JSON lines that `memorybus ingest` reads.

    They keep their ids, times and order, so that ingesting them twice adds nothing, in this log or
    another. FILE is written whole or not at all, and only you can read it. What is forgotten is not
    in it. Exit code 1 if a part of the past cannot be read.

    For example:

    - `memorybus export ana.jsonl --user ana`
    - `memorybus export --user ana --since 2026-01-01 | gzip > ana.jsonl.gz`
    """
    from memorybus.operations import export
    from memorybus.query.query import Query

    output = common.output()
    if output.json and file is None:
        output.note("export: --json tells what was done; name a FILE for the events", "red")
        return 2
    query = Query(users=tuple(user), agents=tuple(agent or ()), workspaces=tuple(workspace or ()))
    done = export.Exported(file=str(file or ""))
    first, end = (None if text is None else stamp(text) for text in (since, until))
    found = export.events(common.settings(), query, first, end, done.unread)
    with output.progress("events") as bar:
        task = bar.add_task("export", total=None)
        lines = export.lines(found, done, lambda: bar.advance(task))
        if file is not None:
            export.write_whole(file, lines)
        else:
            for line in lines:
                output.pipe_line(line)
    _show(output, done)
    return 0 if done.whole else 1


def _show(output: Output, done: "Exported") -> None:
    for why in done.unread:
        output.note(f"a part of the past is left out: {why}", "yellow")
    for known, why in list(done.left_out.items())[:_SHOWN]:
        output.note(f"left out: {known} ({why})", "red")
    if done.left_out_events > _SHOWN:
        output.note(f"{done.left_out_events} left out in all; --json names more", "red")
    if output.json:
        output.result(done)
    else:
        output.note(f"{done.events} events written{f' to {done.file}' if done.file else ''}")
