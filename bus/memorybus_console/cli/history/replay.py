"""``memorybus replay``: apply the history again, into a copy of a provider instance."""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter
from memorybus.clock import SYSTEM
from memorybus.errors import ConfigError

from memorybus_console.cli.key_values import parse_key_values
from memorybus_console.cli.options import (
    CARE,
    DEFAULT,
    Common,
    ExecuteOption,
    RepeatedOption,
    not_negative,
    to_absolute_time,
)
from memorybus_console.cli.progress import (
    LineSchedule,
    checked_stores,
    show_list,
)
from memorybus_console.views import replay as replay_view
from memorybus_console.views.output import NOTHING_DONE, Output
from memorybus_console.views.plan import time_text
from memorybus_console.views.safe import visible

if TYPE_CHECKING:
    from memorybus_console.operations.copies.copies import Copy
    from memorybus_console.operations.copies.filling import CopyProgress, LocalWorker
    from memorybus_console.operations.copies.replay import ReplayPlan, ReplayRequest
    from memorybus_console.operations.stores import Stores


def register(app: App) -> None:
    """Add this group's commands."""
    replay = App(name="replay", group=CARE)
    replay.default(run_replay)
    replay.command(run_replay_ls, name="ls")
    app.command(replay)


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
        """Check that the options either fill a copy or drop one.

        Raises:
            ConfigError: these options do not go together.
        """
        filled = bool(self.provider or self.into)
        if bool(cancel) == filled or bool(self.provider) != bool(self.into):
            raise ConfigError("give --provider NAME and --into NEW, or --cancel NAME")
        if cancel and self != NO_REPLAY_OPTIONS:
            raise ConfigError(
                "--cancel goes with none of the options that say what to fill a copy with"
            )

    def request(self, reason: str) -> "ReplayRequest":
        """Return the request for a replay.

        Raises:
            ConfigError: the copy cannot have this name, or an option cannot be read.
        """
        from memorybus.config.path_names import check_name
        from memorybus.query.query import Query

        from memorybus_console.cli.options import operator
        from memorybus_console.operations.copies.replay import ReplayRequest

        return ReplayRequest(
            provider=self.provider or "",
            into=check_name(self.into or ""),
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
            reason=reason,
            by=operator(),
        )


NO_REPLAY_OPTIONS = ReplayOptions()


def run_replay(
    *,
    options: ReplayOptions = NO_REPLAY_OPTIONS,
    cancel: Annotated[str | None, Parameter(help="Drop this copy, with its state.")] = None,
    reason: Annotated[str | None, Parameter(help="Why; it is kept with the copy.")] = None,
    execute: ExecuteOption = False,
    common: Common = DEFAULT,
) -> int:
    """Apply the history again, through the same applier, into a copy of a provider instance.

    Without --execute only the plan is shown. The same command resumes a replay that was
    interrupted. Workers that serve the provider help to fill the copy, but none has to run. Without
    a terminal, and with --json, progress is printed as JSON lines, the result last.

    For example:

    - `memorybus replay --provider holographic --into holographic-2`
    - `memorybus replay --provider holographic --into may --until 2026-06-01 --execute`
    - `memorybus replay --cancel holographic-2 --execute`
    """
    output, settings = common.output(), common.settings()
    options.check(cancel)
    if cancel:
        with checked_stores(settings) as stores:
            return _cancel(output, stores, cancel, execute=execute)
    wanted = options.request(reason or "")
    with checked_stores(settings) as stores:
        return _replay(output, stores, wanted, execute=execute)


def _replay(output: Output, stores: "Stores", wanted: "ReplayRequest", *, execute: bool) -> int:
    from memorybus_console.operations.copies import replay as replaying

    plan = replaying.plan_replay(stores, wanted)
    if not execute:
        if output.json:
            output.result(plan)
        else:
            output.show(replay_view.describe_plan(plan))
            output.note(NOTHING_DONE, "yellow")
        return 0
    if not output.json:
        output.note(replay_view.describe_start(plan))
    return _fill(output, stores, replaying.begin_replay(stores, plan, wanted))


def _fill(output: Output, stores: "Stores", plan: "ReplayPlan") -> int:
    """Fill the copy to its end and show the result; return the exit code."""
    from memorybus_console.operations.copies import filling

    name = plan.instance.name
    worker = filling.LocalWorker(stores.settings, name) if plan.here else None
    if worker is None and plan.instance.provider not in stores.roster.served_providers():
        raise filling.NobodyServes(_describe_unserved(plan))
    try:
        parked = _show_progress(output, stores, plan, worker)
    except (KeyboardInterrupt, SystemExit):
        output.note(_describe_interrupted(stores, plan), "yellow")
        raise
    if _prints_lines(output):
        home = str(stores.settings.provider_home(name)) if plan.home else None
        finished = {"finished": True, "provider": plan.instance.provider, "into": name}
        output.json_line({**finished, "done": plan.total, "parked": parked, "home": home})
    else:
        output.show(visible(f"{name} has passed {plan.total} places of the history"))
    if parked:
        output.note(f"{parked} events are parked: memorybus dlq ls --provider {name}", "yellow")
    return 0


def _show_progress(
    output: Output, stores: "Stores", plan: "ReplayPlan", worker: "LocalWorker | None"
) -> int:
    """Show progress until the copy is filled; return how many of its events are parked."""
    from memorybus_console.operations.copies.filling import follow_progress

    parked, schedule, lines = 0, LineSchedule(SYSTEM), _prints_lines(output)
    with worker or nullcontext(), output.progress("events") as bar:
        task = bar.add_task("replay", total=None)
        for now in follow_progress(stores, plan.instance, worker):
            bar.update(task, completed=now.done, total=now.total, description=_pace(now))
            if lines and schedule.is_due(last=now.finished):
                output.json_line(now)
            parked = now.parked
    return parked


def _prints_lines(output: Output) -> bool:
    """Say whether progress is printed as JSON lines, because there is no terminal for a bar."""
    return output.json or not output.out.is_terminal


def _pace(now: "CopyProgress") -> str:
    return f"{now.rate:,.0f}/s" + ("" if now.eta is None else f", {time_text(now.eta)} left")


def _describe_unserved(plan: "ReplayPlan") -> str:
    home = plan.home
    where = f"{home.path} on {home.host}" if home else "another host"
    return (
        f"the state of {plan.instance.provider} lies in {where}, and no live worker serves it: run "
        f"this command there, or start a worker there; the copy {plan.instance.name!r} waits for it"
    )


def _describe_interrupted(stores: "Stores", plan: "ReplayPlan") -> str:
    name = plan.instance.name
    others = plan.instance.provider in stores.roster.served_providers()
    said = (
        "running workers continue to fill it" if others else "the same command continues to fill it"
    )
    return (
        f"interrupted: what the copy {name} has so far is complete; {said}; to drop it: "
        f"memorybus replay --cancel {name} --execute"
    )


def _cancel(output: Output, stores: "Stores", name: str, *, execute: bool) -> int:
    from memorybus_console.operations.copies import copies as copying

    drop = copying.copy_to_drop(stores, name)
    waits = copying.drop_copy(stores, drop) if execute else ""
    gone = execute and not waits
    if output.json:
        output.result({**_copy_json(drop), "executed": execute, "gone": gone, "waits": waits})
        return 0
    what = f"{name}, a copy of {drop.provider}, with its lanes" + (
        f" and what lies in {drop.home}" if drop.home else ""
    )
    if not execute:
        output.show(visible(f"would drop {what}"))
        output.note(NOTHING_DONE, "yellow")
    elif gone:
        output.show(visible(f"dropped {what}"))
    else:
        output.show(visible(waits))
    return 0


def _copy_json(drop: "Copy") -> dict[str, Any]:
    import msgspec

    return dict(msgspec.to_builtins(drop))


def run_replay_ls(*, common: Common = DEFAULT) -> int:
    """List the copies: their purpose, progress and place.

    For example:

    - `memorybus replay ls`
    - `memorybus replay ls --json | jq '.[] | select(.state == "filling")'`
    """
    from memorybus_console.operations.copies.copies import list_copies

    output = common.output()
    with checked_stores(common.settings()) as stores:
        found = list_copies(stores)
    none = "no copies; memorybus replay --provider NAME --into NEW would make one"
    return show_list(output, found, lambda: replay_view.table(found), none)
