"""``memorybus export``: a person's events, to take them elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from memorybus.text.times import parse_timestamp

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import DEFAULT, MEMORIES, Common, check_time, to_absolute_time
from memorybus_console.cli.progress import note_on_interrupt
from memorybus_console.result import Prints
from memorybus_console.views.output import Output

if TYPE_CHECKING:
    from memorybus.config.settings import Settings

    from memorybus_console.operations.export import ExportRequest, ExportResult

_MAX_SHOWN = 20
"""How many of the events that were left out are shown."""

_INTERRUPTED = "interrupted: nothing was written"


def _repeatable(text: str) -> Parameter:
    """Return an option that may be repeated, but not given empty: that would mean everybody."""
    return Parameter(help=text, negative="", consume_multiple=False)


ExportFileOption = Annotated[
    Path | None, Parameter(help="Where to; standard output if none is given.")
]
ExportUsersOption = Annotated[list[str], _repeatable("This person's events; may be repeated.")]
ExportAgentsOption = Annotated[list[str] | None, _repeatable("Only this agent's; may be repeated.")]
ExportWorkspacesOption = Annotated[
    list[str] | None, _repeatable("Only this workspace's, '' for none; may be repeated.")
]
ExportSinceOption = Annotated[
    str | None,
    Parameter(
        help="Only what happened at this time or later: ISO 8601, UTC if no zone; or how long "
        "ago: 2h, 7d.",
        converter=to_absolute_time,
        validator=check_time,
    ),
]
ExportUntilOption = Annotated[
    str | None,
    Parameter(
        help="Only what happened before this time.",
        converter=to_absolute_time,
        validator=check_time,
    ),
]
ExportProviderOption = Annotated[
    str | None, Parameter(help="Export what this provider or instance keeps, instead of events.")
]


def register(app: App) -> None:
    """Add this group's commands."""
    app.command(run_export, name="export", group=MEMORIES)


@shown
def run_export(
    file: ExportFileOption = None,
    /,
    *,
    user: ExportUsersOption,
    agent: ExportAgentsOption = None,
    workspace: ExportWorkspacesOption = None,
    since: ExportSinceOption = None,
    until: ExportUntilOption = None,
    provider: ExportProviderOption = None,
    common: Common = DEFAULT,
) -> "Annotated[int, Prints(ExportResult)]":
    """Write a person's events as JSON lines that `memorybus ingest` reads.

    Events keep their ids, times and order, so that ingesting them twice adds nothing, in this log
    or another. FILE is written whole or not at all, and only you can read it. Forgotten events are
    not in it. Exit code 1 if a part of the past cannot be read. With --provider a worker lists what
    the provider keeps now: one memory on each line, with its times and the events that it came
    from, if they are known.

    For example:

    - `memorybus export ana.jsonl --user ana`
    - `memorybus export --user ana --since 2026-01-01 | gzip > ana.jsonl.gz`
    - `memorybus export facts.jsonl --user ana --provider holographic`
    """
    from memorybus.query.query import Query

    from memorybus_console.operations.export import ExportRequest

    output = common.output()
    if output.json and file is None:
        output.note("export: --json prints what was done; name a FILE for the events", "red")
        return 2
    if provider is not None and (since or until):
        output.note("export: --since and --until choose events; leave out --provider", "red")
        return 2
    asked = ExportRequest(
        query=Query(
            users=tuple(user), agents=tuple(agent or ()), workspaces=tuple(workspace or ())
        ),
        since=None if since is None else parse_timestamp(since),
        until=None if until is None else parse_timestamp(until),
        provider=provider,
        file=file,
    )
    done = _export(common.settings(), output, asked)
    _show(output, done)
    return 0 if done.whole else 1


def _export(settings: "Settings", output: Output, asked: "ExportRequest") -> "ExportResult":
    """Export with a progress bar; on Ctrl-C, print whether anything was written."""
    from memorybus_console.operations.export import run_export as export_lines

    said = _INTERRUPTED if asked.file is not None else "interrupted: this is not all of it"
    with note_on_interrupt(output, said), output.progress("lines") as bar:
        task = bar.add_task("export", total=None)
        return export_lines(settings, asked, output.pipe_line, lambda: bar.advance(task))


def _show(output: Output, done: "ExportResult") -> None:
    for why in done.unread:
        output.note(f"a part of the past is left out: {why}", "yellow")
    for known, why in list(done.left_out.items())[:_MAX_SHOWN]:
        output.note(f"left out: {known} ({why})", "red")
    if done.left_out_events > _MAX_SHOWN:
        output.note(f"{done.left_out_events} left out in all; --json names more", "red")
    if output.json:
        output.result(done)
    else:
        what = f"{done.memories} memories" if done.provider else f"{done.events} events"
        output.note(f"{what} written{f' to {done.file}' if done.file else ''}")
