"""``memorybus export``: a person's events, to take them elsewhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from memorybus.errors import ConfigError
from memorybus.text.times import parse_timestamp

from memorybus_console.cli.answers import shown
from memorybus_console.cli.failures import note_on_interrupt, show_stage
from memorybus_console.cli.options import DEFAULT, Common, check_time, to_absolute_time
from memorybus_console.result import Presentation, Remark, unread_notes

if TYPE_CHECKING:
    from memorybus_console.operations.export import ExportResult

_MAX_SHOWN = 20  # how many of the events that were left out are shown

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
) -> "Presentation[ExportResult]":
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
    from memorybus_console.operations.export import run_export as export_lines

    output = common.output()
    if output.json and file is None:
        raise ConfigError("export: --json prints what was done; name a FILE for the events")
    if provider is not None and (since or until):
        raise ConfigError("export: --since and --until choose events; leave out --provider")
    request = ExportRequest(
        query=Query(
            users=tuple(user), agents=tuple(agent or ()), workspaces=tuple(workspace or ())
        ),
        since=None if since is None else parse_timestamp(since),
        until=None if until is None else parse_timestamp(until),
        provider=provider,
        file=file,
    )
    interrupted = _INTERRUPTED if file is not None else "interrupted: this is not all of it"
    with note_on_interrupt(output, interrupted), show_stage(output, "export", "lines") as step:
        export = export_lines(common.settings(), request, output.pipe_line, step)
    return Presentation(export, (), notes=_notes(export), code=int(not export.whole))


def _notes(export: "ExportResult") -> Iterator[Remark]:
    yield from unread_notes(export.unread)
    for event, why in list(export.left_out.items())[:_MAX_SHOWN]:
        yield Remark(f"left out: {event} ({why})", "red")
    if export.left_out_events > _MAX_SHOWN:
        yield Remark(f"{export.left_out_events} left out in all; --json names more", "red")
    lines = f"{export.memories} memories" if export.provider else f"{export.events} events"
    yield Remark(f"{lines} written{f' to {export.file}' if export.file else ''}")
