"""``memorybus curator``: let memories age, see what changed, and take it back."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from memorybus_console.cli.answers import act, shown
from memorybus_console.cli.options import DEFAULT, Common, positive

if TYPE_CHECKING:
    from memorybus_console.operations.curation import (
        CurationReport,
        CuratorStatus,
        PlannedCuration,
    )

MemoryIdOption = Annotated[
    str, Parameter(help="The memory's id, as `memories list --json` and reports show it.")
]
OwnerOption = Annotated[
    str | None, Parameter(help="Whose it is, if several people have one of this id.")
]
RunOption = Annotated[str, Parameter(help="The run's id, or its beginning.")]
CuratorReasonOption = Annotated[str, Parameter(help="Why, for the record.")]


@shown
def run_run(
    *,
    dry_run: Annotated[
        bool, Parameter(negative="", help="Show what would change, and change nothing.")
    ] = False,
    review: Annotated[
        bool,
        Parameter(negative="", help="Let every repetition and proposal wait for `curator accept`."),
    ] = False,
    common: Common = DEFAULT,
) -> "PlannedCuration | CurationReport | None":
    """Run the curator now; workers run it by themselves every `curator_every`.

    A memory that nobody used for `stale_after` becomes stale, and after `archive_after` it is
    archived: it is in no prompt any more, tools find it, and it comes back when it is used.
    Memories with the same words are archived but for one.

    For example:

    - `memorybus curator run --dry-run`
    - `memorybus curator run --review`
    """
    from memorybus_console.actions.action import Ground
    from memorybus_console.actions.curation import RunCurator
    from memorybus_console.cli.options import operator

    action = RunCurator(repetitions="review" if review else "archive")
    if dry_run:
        return action.plan(Ground(common.settings(), operator()))
    return act(action, common)


@shown
def run_status(*, common: Common = DEFAULT) -> "CuratorStatus":
    """List the curator's last runs, the newest first.

    For example:

    - `memorybus curator status`
    """
    from memorybus_console.operations.curation import read_status

    return read_status(common.settings())


@shown
def run_report(
    number: Annotated[int, Parameter(help="1 for the last run.", validator=positive)] = 1,
    /,
    *,
    common: Common = DEFAULT,
) -> "CurationReport":
    """Show what a run changed, memory by memory.

    For example:

    - `memorybus curator report`
    - `memorybus curator report 2 --json`
    """
    from memorybus_console.operations.curation import read_report

    return read_report(common.settings(), number)


@shown
def run_pin(
    memory: MemoryIdOption,
    /,
    *,
    user: OwnerOption = None,
    reason: CuratorReasonOption = "",
    common: Common = DEFAULT,
) -> "PlannedCuration | CurationReport | None":
    """Keep a memory in prompts, however old it is.

    For example:

    - `memorybus curator pin 0a1b2c3d4e5f60 --reason "an allergy"`
    """
    from memorybus_console.actions.curation import PinMemory

    return act(PinMemory(memory=memory, user=user, reason=reason), common)


@shown
def run_unpin(
    memory: MemoryIdOption,
    /,
    *,
    user: OwnerOption = None,
    reason: CuratorReasonOption = "",
    common: Common = DEFAULT,
) -> "PlannedCuration | CurationReport | None":
    """Let a pinned memory age again, from now on.

    For example:

    - `memorybus curator unpin 0a1b2c3d4e5f60`
    """
    from memorybus_console.actions.curation import UnpinMemory

    return act(UnpinMemory(memory=memory, user=user, reason=reason), common)


@shown
def run_accept(
    run: RunOption, /, *, reason: CuratorReasonOption = "", common: Common = DEFAULT
) -> "PlannedCuration | CurationReport | None":
    """Do what waits in a run, as far as it still holds.

    For example:

    - `memorybus curator accept 0198f2c4`
    """
    from memorybus_console.actions.curation import AcceptRepetitions

    return act(AcceptRepetitions(run=run, reason=reason), common)


@shown
def run_reject(
    run: RunOption, /, *, reason: CuratorReasonOption = "", common: Common = DEFAULT
) -> "PlannedCuration | CurationReport | None":
    """Drop what waits in a run; it is not proposed again.

    For example:

    - `memorybus curator reject 0198f2c4`
    """
    from memorybus_console.actions.curation import RejectProposals

    return act(RejectProposals(run=run, reason=reason), common)


@shown
def run_undo(
    run: RunOption, /, *, reason: CuratorReasonOption = "", common: Common = DEFAULT
) -> "PlannedCuration | CurationReport | None":
    """Give the memories of a run the states that they had before it.

    What changed again since stays as it is. A repetition that comes back is pinned, with the memory
    that stood for it.

    For example:

    - `memorybus curator undo 0198f2c4 --reason "Ana wants them"`
    """
    from memorybus_console.actions.curation import UndoCuration

    return act(UndoCuration(run=run, reason=reason), common)
