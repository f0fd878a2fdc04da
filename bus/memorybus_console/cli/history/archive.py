"""``memorybus archive``: the part of the log that is sealed outside Redis."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from memorybus.text.display import format_duration

from memorybus_console.cli.answers import ReasonOption, YesOption, act, shown
from memorybus_console.cli.failures import show_stage
from memorybus_console.cli.options import DEFAULT, Common
from memorybus_console.result import Presentation, Remark
from memorybus_console.views.render import line

if TYPE_CHECKING:
    from memorybus.processes.reports import ArchiverRun
    from memorybus.query.query import Query

    from memorybus_console.operations.archive import ArchiveExported, ArchiveVerified, Segments
    from memorybus_console.operations.ingest.new_events import ImportResult


@Parameter(name="*")
@dataclass(frozen=True)
class SealedOptions:
    """Which of the sealed events are meant."""

    user: Annotated[list[str] | None, Parameter(help="Only this person's; may be repeated.")] = None
    session: Annotated[
        list[str] | None,
        Parameter(help="Only this session's (with --user, that person's)."),
    ] = None
    agent: Annotated[list[str] | None, Parameter(help="Only this agent's.")] = None
    workspace: Annotated[
        list[str] | None, Parameter(help="Only this workspace's; '' for none.")
    ] = None

    def query(self) -> "Query":
        from memorybus.query.query import Query

        return Query(
            users=tuple(self.user or ()),
            sessions=tuple(self.session or ()),
            agents=tuple(self.agent or ()),
            workspaces=tuple(self.workspace or ()),
        )


ALL_SEALED = SealedOptions()


@shown
def run_archive_run(*, common: Common = DEFAULT) -> "Presentation[ArchiverRun]":
    """Seal events that are due, join small segments, trim the log; workers do this by themselves.

    For example:

    - `memorybus archive run`
    - `memorybus archive run --json | jq .events`
    """
    from memorybus_console.operations.archive import archive_now

    settings = common.settings()
    run = archive_now(settings)
    sealed = line(f"{run.events} events sealed in {run.place}")
    return Presentation(
        run, [sealed], notes=_run_notes(run, settings.seal_after), code=int(run.hindered)
    )


def _run_notes(run: "ArchiverRun", seal_after: float) -> Iterator[Remark]:
    if run.elsewhere:
        yield Remark("the archive is on another host: run this there", "yellow")
    for name, why in run.errors.items():
        yield Remark(f"{name}: {why}", "red")
    if run.busy:
        yield Remark(f"left to another archiver: {', '.join(run.busy)}")
    if run.idle:
        after = format_duration(seal_after)
        yield Remark(f"nothing is due: an event is sealed {after} after it arrived")


@shown
def run_archive_ls(*, common: Common = DEFAULT) -> "Segments":
    """List the segments: numbers of events, sizes, times.

    For example:

    - `memorybus archive ls`
    - `memorybus archive ls --json | jq -r '.segments[].file'`
    """
    from memorybus_console.operations.archive import list_segments

    return list_segments(common.settings())


@shown
def run_archive_verify(*, common: Common = DEFAULT) -> "ArchiveVerified":
    """Check every manifest and every byte of the segments; exit code 1 if anything is damaged.

    For example:

    - `memorybus archive verify`
    - `memorybus archive verify --json | jq .damaged`
    """
    from memorybus_console.operations.archive import verify_archive

    with show_stage(common.output(), "verify", "files") as step:
        return verify_archive(common.settings(), step)


@shown
def run_archive_export(
    directory: Annotated[Path, Parameter(help="Where to write; created if it is missing.")],
    /,
    *,
    options: SealedOptions = ALL_SEALED,
    common: Common = DEFAULT,
) -> "ArchiveExported":
    """Write the sealed events, or some of them, as an archive of their own, and check it.

    Events that are only in the log are not exported: run `memorybus archive run` first.

    For example:

    - `memorybus archive export /backup/memories`
    - `memorybus archive export ann --user ann`
    """
    from memorybus_console.operations.archive import export_archive

    with show_stage(common.output(), "export", "segments") as step:
        return export_archive(common.settings(), directory, options.query(), step)


@shown
def run_archive_import(
    directory: Annotated[Path, Parameter(help="What `archive export` wrote, or an archive.")],
    /,
    *,
    options: SealedOptions = ALL_SEALED,
    reason: ReasonOption = "",
    yes: YesOption = False,
    common: Common = DEFAULT,
) -> "ImportResult | None":
    """Publish the events of an archive into this log, in order; skip those that it has already.

    For example:

    - `memorybus archive import /backup/memories`
    - `memorybus archive import ann --user ann --yes`
    """
    from memorybus_console.actions.memories import ImportArchive

    action = ImportArchive(directory=directory.absolute(), query=options.query(), reason=reason)
    return act(action, common, yes=yes)
