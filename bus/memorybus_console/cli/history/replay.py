"""``memorybus replay``: apply the history again, into a copy of a provider instance."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from memorybus.clock import SYSTEM
from memorybus.errors import ConfigError

from memorybus_console.cli.answers import ReasonOption, YesOption, act, shown
from memorybus_console.cli.failures import LineSchedule
from memorybus_console.cli.options import (
    DEFAULT,
    Common,
    RepeatedOption,
    not_negative,
    parse_key_values,
    to_absolute_time,
)
from memorybus_console.result import IfEmpty

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memorybus_console.actions.history import Replay
    from memorybus_console.operations.copies.copies import Copy, CopyDropped
    from memorybus_console.operations.copies.replay import CopyFilled, CopyProgress, ReplayPlan

_NO_COPIES = "no copies; memorybus replay --provider NAME --into NEW would make one"


@Parameter(name="*")
@dataclass(frozen=True)
class ReplayOptions:
    """Which copy to fill, and with which part of the history."""

    provider: Annotated[
        str | None, Parameter(help="The instance to copy; the copy has its kind and options.")
    ] = None
    into: Annotated[str | None, Parameter(help="The copy's name.")] = None
    since: Annotated[
        str | None,
        Parameter(
            name="--from",
            converter=to_absolute_time,
            help="First moment: an ISO time (UTC if it names no zone), how long ago (2h, 7d), "
            "p07:1234, or an event's id.",
        ),
    ] = None
    until: Annotated[
        str | None,
        Parameter(help="Last moment; by default the present.", converter=to_absolute_time),
    ] = None
    session: Annotated[
        RepeatedOption,
        Parameter(help="Only this session (with --user, that person's); may be repeated."),
    ] = None
    lineage: Annotated[
        RepeatedOption, Parameter(help="Only this session and all that came from it.")
    ] = None
    user: Annotated[RepeatedOption, Parameter(help="Only this person's.")] = None
    agent: Annotated[RepeatedOption, Parameter(help="Only this agent's.")] = None
    kind: Annotated[RepeatedOption, Parameter(name="--type", help="Only events of this type.")] = (
        None
    )
    rate: Annotated[
        float | None,
        Parameter(
            help="Events a second at most; a later run may change it.",
            validator=not_negative,
        ),
    ] = None
    change: Annotated[
        RepeatedOption, Parameter(name="--set", help="Change an option of the copy: key=value.")
    ] = None
    force: Annotated[
        bool, Parameter(negative="", help="Fill a target even if it is not empty.")
    ] = False

    def check(self, cancel: str | None) -> None:
        """Check that the options either fill a copy or drop one."""
        filled = bool(self.provider or self.into)
        if bool(cancel) == filled or bool(self.provider) != bool(self.into):
            raise ConfigError("give --provider NAME and --into NEW, or --cancel NAME")
        if cancel and self != NO_REPLAY_OPTIONS:
            raise ConfigError("--cancel excludes the options of a copy")

    def action(self, reason: str, watch: "Callable[[CopyProgress], None]") -> "Replay":
        """Return the replay that the options ask for."""
        from memorybus.query.query import Query

        from memorybus_console.actions.history import Replay

        return Replay(
            provider=self.provider or "",
            into=self.into or "",
            query=Query(
                sessions=tuple(self.session or ()),
                lineages=tuple(self.lineage or ()),
                users=tuple(self.user or ()),
                agents=tuple(self.agent or ()),
                types=tuple(self.kind or ()),
            ),
            since=self.since or "",
            until=self.until or "",
            rate=self.rate,
            options=parse_key_values(self.change or ()),
            force=self.force,
            watch=watch,
            reason=reason,
        )


NO_REPLAY_OPTIONS = ReplayOptions()


@shown
def run_replay(
    *,
    options: ReplayOptions = NO_REPLAY_OPTIONS,
    cancel: Annotated[str | None, Parameter(help="Drop this copy, with its state.")] = None,
    reason: ReasonOption = "",
    yes: YesOption = False,
    common: Common = DEFAULT,
) -> "Iterator[CopyProgress] | ReplayPlan | CopyFilled | CopyDropped | None":
    """Apply the history again, through the same applier, into a copy of a provider instance.

    The same command resumes a replay that was
    interrupted. Workers that serve the provider help to fill the copy, but none has to run. Without
    a terminal, and with --json, progress is printed as JSON lines, the result last.

    For example:

    - `memorybus replay --provider holographic --into holographic-2`
    - `memorybus replay --provider holographic --into may --until 2026-06-01 --yes`
    - `memorybus replay --cancel holographic-2 --yes`
    """
    from memorybus_console.actions.history import DropCopy
    from memorybus_console.operations.copies.replay import CopyFilled

    options.check(cancel)
    if cancel:
        return act(DropCopy(name=cancel, reason=reason), common, yes=yes)
    output, schedule = common.output(), LineSchedule(SYSTEM)
    prints_lines = output.json or not output.out.is_terminal  # there is no terminal for a bar

    def watch(progress: "CopyProgress") -> None:
        if prints_lines and schedule.is_due(last=progress.finished):
            output.json_line(progress)

    action = options.action(reason, watch)
    answer = act(action, common, yes=yes, interrupted=_interrupted(options.into))
    if isinstance(answer, CopyFilled) and prints_lines:
        output.json_line(answer)
        return None
    return answer


def _interrupted(into: str | None) -> str:
    return (
        f"interrupted: what the copy {into} has so far is complete; the same command continues "
        f"to fill it, as running workers do; to drop it: memorybus replay --cancel {into} --yes"
    )


@shown
def run_replay_ls(*, common: Common = DEFAULT) -> Annotated["list[Copy]", IfEmpty(_NO_COPIES)]:
    """List the copies: their purpose, progress and place.

    For example:

    - `memorybus replay ls`
    - `memorybus replay ls --json | jq '.[] | select(.state == "filling")'`
    """
    from memorybus_console.operations.copies.copies import list_copies
    from memorybus_console.operations.stores import checked_stores

    with checked_stores(common.settings()) as stores:
        return list_copies(stores)


APP = App(name="replay")
APP.default(run_replay)
APP.command(run_replay_ls, name="ls")
