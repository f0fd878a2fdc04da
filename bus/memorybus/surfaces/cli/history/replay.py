"""``memorybus replay`` applies the history again, into a copy of a provider instance."""

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from memorybus.clock import SYSTEM
from memorybus.errors import ConfigError
from memorybus.surfaces.cli.key_values import given
from memorybus.surfaces.cli.options import CARE, DEFAULT, Common, absolute, not_negative
from memorybus.surfaces.cli.progress import (
    UNTOUCHED,
    Seldom,
    checked_stores,
    show_found,
    steps,
)
from memorybus.surfaces.views import replay as replay_view
from memorybus.surfaces.views.output import NOTHING_DONE, Output
from memorybus.surfaces.views.plan import lasting
from memorybus.surfaces.views.safe import visible

if TYPE_CHECKING:
    from memorybus.operations.copies.copies import Copy
    from memorybus.operations.copies.filling import CopyProgress, LocalWorker
    from memorybus.operations.copies.replay import ReplayPlan, ReplayRequest
    from memorybus.operations.stores import Stores

Words = Annotated[list[str] | None, Parameter(negative="", consume_multiple=False)]


def register(app: App) -> None:
    """Add this group's commands."""
    replay = App(name="replay", group=CARE)
    replay.default(run_replay)
    replay.command(run_replay_ls, name="ls")
    app.command(replay)


@Parameter(name="*")
@dataclass(frozen=True)
class ReplayOptions:
    """Which copy is filled, and with what of the history."""

    provider: Annotated[
        str | None, Parameter(help="The instance whose kind and options the copy has.")
    ] = None
    into: Annotated[str | None, Parameter(help="The copy's name.")] = None
    since: Annotated[
        str | None,
        Parameter(
            name="--from",
            converter=absolute,
            help="First moment: an ISO time (UTC if it names no zone), how long ago (2h, 7d), "
            "p07:1234, or an event's id.",
        ),
    ] = None
    until: Annotated[
        str | None, Parameter(help="Last moment; the present if none.", converter=absolute)
    ] = None
    session: Annotated[
        Words, Parameter(help="Only this session (with --user, that person's); may be repeated.")
    ] = None
    lineage: Annotated[Words, Parameter(help="Only this one and all that came of it.")] = None
    user: Annotated[Words, Parameter(help="Only this person's.")] = None
    agent: Annotated[Words, Parameter(help="Only this agent's.")] = None
    kind: Annotated[Words, Parameter(name="--type", help="Only events of this type.")] = None
    rate: Annotated[
        float | None,
        Parameter(
            help="Events a second at most; another number is kept to from then on.",
            validator=not_negative,
        ),
    ] = None
    change: Annotated[
        Words, Parameter(name="--set", help="Change an option of the copy: key=value.")
    ] = None
    force: Annotated[bool, Parameter(negative="", help="Also into a target that is not empty.")] = (
        False
    )

    def check(self, cancel: str | None) -> None:
        """Make sure that a copy is filled or dropped, and not both.

        Raises:
            ConfigError: these options do not go together.
        """
        filled = bool(self.provider or self.into)
        if bool(cancel) == filled or bool(self.provider) != bool(self.into):
            raise ConfigError("give --provider NAME and --into NEW, or --cancel NAME")
        if cancel and self != NOTHING_TAKEN:
            raise ConfigError("--cancel fills nothing: leave out --set, --force, and what to take")

    def request(self, reason: str) -> "ReplayRequest":
        """Return what is asked.

        Raises:
            ConfigError: the copy cannot be called so, or an option cannot be read.
        """
        from memorybus.config.path_names import check_name
        from memorybus.operations.copies.replay import ReplayRequest
        from memorybus.query.query import Query
        from memorybus.surfaces.cli.options import operator

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
            options=given(self.change or ()),
            force=self.force,
            reason=reason,
            by=operator(),
        )


NOTHING_TAKEN = ReplayOptions()


def run_replay(
    *,
    options: ReplayOptions = NOTHING_TAKEN,
    cancel: Annotated[str | None, Parameter(help="Drop this copy, with its state.")] = None,
    reason: Annotated[str | None, Parameter(help="Why; it is kept with the copy.")] = None,
    execute: Annotated[
        bool, Parameter(negative="", help="Do it; without, only say what would be done.")
    ] = False,
    common: Common = DEFAULT,
) -> int:
    """Apply the history again, through the same applier, into a copy of a provider instance.

    Without --execute it says what would be done. The same command goes on with a replay that was
    interrupted. Workers that serve the provider join in; none needs to run. Where nobody watches,
    and with --json, progress comes as JSON lines, the result last.

    For example:

    - `memorybus replay --provider holographic --into holographic-2`
    - `memorybus replay --provider holographic --into may --until 2026-06-01 --execute`
    - `memorybus replay --cancel holographic-2 --execute`
    """
    output, settings = common.output(), common.settings()
    options.check(cancel)
    if cancel:
        with checked_stores(settings) as stores:
            return _cancelled(output, stores, cancel, execute=execute)
    wanted = options.request(reason or "")
    with checked_stores(settings) as stores:
        return _replayed(output, stores, wanted, execute=execute)


def _replayed(output: Output, stores: "Stores", wanted: "ReplayRequest", *, execute: bool) -> int:
    from memorybus.operations.copies import replay as replaying

    with steps(output, "plan", "events read", UNTOUCHED) as tell:
        plan = replaying.plan_replay(stores, wanted, partial(tell, "plan"))
    if not execute:
        if output.json:
            output.result(plan)
        else:
            output.show(replay_view.described(plan))
            output.note(NOTHING_DONE, "yellow")
        return 0
    if not output.json:
        output.note(replay_view.sentence(plan))
    return _filled(output, stores, replaying.begin_replay(stores, plan, wanted))


def _filled(output: Output, stores: "Stores", plan: "ReplayPlan") -> int:
    """Follow the copy until it has all; return the exit code."""
    from memorybus.operations.copies import filling

    name = plan.instance.name
    worker = filling.LocalWorker(stores.settings, name) if plan.here else None
    if worker is None and plan.instance.provider not in stores.roster.served_providers():
        raise filling.NobodyServes(_nobody(plan))
    try:
        parked = _followed(output, stores, plan, worker)
    except (KeyboardInterrupt, SystemExit):
        output.note(_interrupted(stores, plan), "yellow")
        raise
    applied = plan.counted.applied_count(parked)
    if _prints_lines(output):
        home = str(stores.settings.provider_home(name)) if plan.home else None
        finished = {"finished": True, "provider": plan.instance.provider, "into": name}
        output.json_line({**finished, "applied": applied, "parked": parked, "home": home})
    else:
        output.show(visible(f"{applied} events of {plan.instance.provider} in {name}"))
    if parked:
        output.note(f"{parked} events are parked: memorybus dlq ls --provider {name}", "yellow")
    return 0


def _followed(
    output: Output, stores: "Stores", plan: "ReplayPlan", worker: "LocalWorker | None"
) -> int:
    """Show how far the copy is until it has all; return how many of its events are parked."""
    from memorybus.operations.copies.filling import follow_progress

    parked, seldom, lines = 0, Seldom(SYSTEM), _prints_lines(output)
    with worker or nullcontext(), output.progress("events") as bar:
        task = bar.add_task("replay", total=None)
        for now in follow_progress(stores, plan.instance, worker):
            bar.update(task, completed=now.done, total=now.total, description=_pace(now))
            if lines and seldom.due(last=now.finished):
                output.json_line(now)
            parked = now.parked
    return parked


def _prints_lines(output: Output) -> bool:
    """Say whether progress comes as JSON lines: nobody watches a bar."""
    return output.json or not output.out.is_terminal


def _pace(now: "CopyProgress") -> str:
    return f"{now.rate:,.0f}/s" + ("" if now.eta is None else f", {lasting(now.eta)} left")


def _nobody(plan: "ReplayPlan") -> str:
    home = plan.home
    where = f"{home.path} on {home.host}" if home else "another host"
    return (
        f"the state of {plan.instance.provider} lies in {where}, and no live worker serves it: run "
        f"this command there, or start a worker there; the copy {plan.instance.name!r} waits for it"
    )


def _interrupted(stores: "Stores", plan: "ReplayPlan") -> str:
    name = plan.instance.name
    others = plan.instance.provider in stores.roster.served_providers()
    said = "workers that run go on with it" if others else "the same command goes on with it"
    return (
        f"the copy {name} is whole as far as it is; {said}; to drop it: "
        f"memorybus replay --cancel {name} --execute"
    )


def _cancelled(output: Output, stores: "Stores", name: str, *, execute: bool) -> int:
    from memorybus.operations.copies import copies as copying

    drop = copying.copy_to_drop(stores, name)
    waits = copying.drop_copy(stores, drop) if execute else ""
    gone = execute and not waits
    if output.json:
        output.result({**_shown(drop), "executed": execute, "gone": gone, "waits": waits})
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


def _shown(drop: "Copy") -> dict[str, Any]:
    import msgspec

    return dict(msgspec.to_builtins(drop))


def run_replay_ls(*, common: Common = DEFAULT) -> int:
    """List the copies: what they are for, how far they are, where they lie.

    For example:

    - `memorybus replay ls`
    - `memorybus replay ls --json | jq '.[] | select(.state == "filling")'`
    """
    from memorybus.operations.copies.copies import list_copies

    output = common.output()
    with checked_stores(common.settings()) as stores:
        found = list_copies(stores)
    none = "no copies; memorybus replay --provider NAME --into NEW would make one"
    return show_found(output, found, lambda: replay_view.table(found), none)
