"""``memorybus archive``: the part of the log that is sealed outside Redis."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from memorybus.text.display import format_duration, format_size

from memorybus_console.cli.acting import YesOption, act
from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import DEFAULT, OPERATE, Common
from memorybus_console.cli.progress import show_stage
from memorybus_console.result import Prints
from memorybus_console.views.output import NOTHING_DONE, Output
from memorybus_console.views.render import grid
from memorybus_console.views.safe import one_line, visible

if TYPE_CHECKING:
    from memorybus.processes.archiver_run import ArchiverRun
    from memorybus.query.query import Query

    from memorybus_console.operations.archive.export import ArchiveExported
    from memorybus_console.operations.archive.segments import Segments
    from memorybus_console.operations.archive.verify import ArchiveVerified
    from memorybus_console.operations.ingest.new_events import ImportResult

SealedUsersOption = Annotated[
    list[str] | None, Parameter(name="--user", help="Only this person's; may be repeated.")
]
SealedSessionsOption = Annotated[
    list[str] | None,
    Parameter(name="--session", help="Only this session's (with --user, that person's)."),
]
SealedAgentsOption = Annotated[
    list[str] | None, Parameter(name="--agent", help="Only this agent's.")
]
SealedWorkspacesOption = Annotated[
    list[str] | None, Parameter(name="--workspace", help="Only this workspace's; '' for none.")
]

_MIN_RAW_BYTES = 100_000
"""Bytes of envelopes below which the overhead of the file hides the rate of compression."""

_MAX_SHOWN = 20
"""How many refused events are shown."""


def register(app: App) -> None:
    """Add this group's commands."""
    archive = App(name="archive", help="The sealed past of the log, outside Redis.", group=OPERATE)
    archive.command(run_archive_run, name="run")
    archive.command(run_archive_ls, name="ls")
    archive.command(run_archive_verify, name="verify")
    archive.command(run_archive_export, name="export")
    archive.command(run_archive_import, name="import")
    app.command(archive)


@shown
def run_archive_run(*, common: Common = DEFAULT) -> "Annotated[int, Prints(ArchiverRun)]":
    """Seal events that are due, join small segments, trim the log; workers do this by themselves.

    For example:

    - `memorybus archive run`
    - `memorybus archive run --json | jq .events`
    """
    from memorybus_console.operations.archive.run import archive_now

    output, settings = common.output(), common.settings()
    done = archive_now(settings)
    if output.json:
        output.result(done)
    else:
        _show_run(output, done, settings.seal_after)
    return 1 if done.hindered else 0


def _show_run(output: Output, done: "ArchiverRun", seal_after: float) -> None:
    output.show(visible(f"{done.events} events sealed in {done.place}"))
    if done.elsewhere:
        output.note("the archive lies on another host: run this there", "yellow")
    for name, why in done.errors.items():
        output.note(f"{name}: {why}", "red")
    if done.busy:
        output.note(f"left to another archiver: {', '.join(done.busy)}")
    if done.idle:
        output.note(
            f"nothing is due: an event is sealed {format_duration(seal_after)} after it arrived"
        )


@shown
def run_archive_ls(*, common: Common = DEFAULT) -> "Annotated[int, Prints(Segments)]":
    """List the segments: numbers of events, sizes, times.

    For example:

    - `memorybus archive ls`
    - `memorybus archive ls --json | jq -r '.segments[].file'`
    """
    from memorybus.text.display import iso

    from memorybus_console.operations.archive.segments import list_segments

    output = common.output()
    listed = list_segments(common.settings())
    if output.json:
        output.result(listed)
        return 0
    found = listed.segments
    table = grid("segment", "events", "numbers", "size", "of raw", "from", "to")
    for one in found:
        share = f"{one.bytes / one.raw:.0%}" if one.raw >= _MIN_RAW_BYTES else "-"
        table.add_row(
            *(one_line(one.file), str(one.kept), f"{one.first}-{one.last}", format_size(one.bytes)),
            *(share, iso(one.since), iso(one.until)),
        )
    if found:
        output.show(table)
    kept, stored = sum(one.kept for one in found), format_size(sum(one.bytes for one in found))
    output.note(f"{kept} events in {len(found)} segments, {stored}, in {listed.where}")
    return 0


@shown
def run_archive_verify(*, common: Common = DEFAULT) -> "Annotated[int, Prints(ArchiveVerified)]":
    """Check every manifest and every byte of the segments; exit code 1 if anything is damaged.

    For example:

    - `memorybus archive verify`
    - `memorybus archive verify --json | jq .damaged`
    """
    from memorybus_console.operations.archive.verify import verify_archive

    output = common.output()
    with show_stage(output, "verify", "files") as step:
        done = verify_archive(common.settings(), step)
    if output.json:
        output.result(done)
    else:
        _show_verified(output, done)
    return 0 if done.ok else 1


def _show_verified(output: Output, done: "ArchiveVerified") -> None:
    for one in (*done.noted, *done.damaged):
        style = "red" if one.found == "damaged" else "yellow"
        output.note(f"p{one.partition:02d}/{one.file}: {one.found}: {one.why}", style)
    output.show(visible(f"{done.sound} files sound, {len(done.damaged)} damaged, in {done.where}"))
    if not done.ok:
        output.note("restore the damaged files from a backup; the others are readable", "red")


@shown
def run_archive_export(
    directory: Annotated[Path, Parameter(help="Where to write; created if it is missing.")],
    /,
    *,
    user: SealedUsersOption = None,
    session: SealedSessionsOption = None,
    agent: SealedAgentsOption = None,
    workspace: SealedWorkspacesOption = None,
    common: Common = DEFAULT,
) -> "Annotated[int, Prints(ArchiveExported)]":
    """Write the sealed events, or some of them, as an archive of their own, and check it.

    Events that are only in the log are not exported: run `memorybus archive run` first.

    For example:

    - `memorybus archive export /backup/memories`
    - `memorybus archive export ann --user ann`
    """
    from memorybus_console.operations.archive.export import export_archive

    output, settings = common.output(), common.settings()
    query = _query(user, session, agent, workspace)
    with show_stage(output, "export", "segments") as step:
        done = export_archive(settings, directory, query, step)
    if output.json:
        output.result(done)
    else:
        output.show(visible(f"{done.events} events written to {done.where}, and verified"))
    if not done.events:
        output.note("no such events are sealed; first run: memorybus archive run", "yellow")
    return 0


@shown
def run_archive_import(
    directory: Annotated[Path, Parameter(help="What `archive export` wrote, or an archive.")],
    /,
    *,
    user: SealedUsersOption = None,
    session: SealedSessionsOption = None,
    agent: SealedAgentsOption = None,
    workspace: SealedWorkspacesOption = None,
    yes: YesOption = False,
    common: Common = DEFAULT,
) -> "Annotated[int, Prints(ImportResult)]":
    """Publish the events of an archive into this log, in order; skip those that it has already.

    For example:

    - `memorybus archive import /backup/memories`
    - `memorybus archive import ann --user ann --yes`
    """
    from memorybus_console.actions.archive import ImportArchive

    query = _query(user, session, agent, workspace)
    action = ImportArchive(directory=directory.absolute(), query=query)
    done = act(action, common, yes=yes)
    if done is None:
        return 0
    output = common.output()
    if output.json:
        output.result(done)
    else:
        did = f"{done.published} published" if done.executed else NOTHING_DONE
        output.show(f"{done.events} events, {done.new} new to this log; {did}")
        for known, why in list(done.refused.items())[:_MAX_SHOWN]:
            output.note(f"refused: {known} ({one_line(why)})", "red")
        if done.refused_events > _MAX_SHOWN:
            output.note(f"{done.refused_events} refused in all; --json names more", "red")
        if not done.logged:
            output.note("Redis has not taken all of them yet; `memorybus up` sends the rest")
    return 1 if done.refused_events else 0


def _query(
    user: list[str] | None,
    session: list[str] | None,
    agent: list[str] | None,
    workspace: list[str] | None,
) -> "Query":
    from memorybus.query.query import Query

    return Query(
        users=tuple(user or ()),
        sessions=tuple(session or ()),
        agents=tuple(agent or ()),
        workspaces=tuple(workspace or ()),
    )
