"""``memorybus rebuild`` builds a state again from history beside the live one, and swaps."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, MemoryBusError
from memorybus.surfaces.cli.key_values import given
from memorybus.surfaces.cli.options import CARE, DEFAULT, Common, absolute, operator
from memorybus.surfaces.cli.progress import UNTOUCHED, checked_stores, show_found, steps
from memorybus.surfaces.views import rebuild as rebuild_view
from memorybus.surfaces.views.output import Output
from memorybus.surfaces.views.safe import visible

if TYPE_CHECKING:
    from memorybus.operations.copies.generations import Generation
    from memorybus.operations.rebuild.plan import RebuildRequest
    from memorybus.operations.rebuild.rebuild import Rebuilder
    from memorybus.query.query import Query

Words = Annotated[list[str] | None, Parameter(negative="", consume_multiple=False)]
Flag = Annotated[bool, Parameter(negative="")]


def register(app: App) -> None:
    """Add this group's commands."""
    rebuild = App(
        name="rebuild",
        help="Build a provider's state again from history, beside the live one, then swap.",
        group=CARE,
    )
    rebuild.default(run_rebuild)
    rebuild.command(run_rebuild_ls, name="ls")
    app.command(rebuild)


@Parameter(name="*")
@dataclass(frozen=True)
class RebuildOptions:
    """What a rebuild takes of the history, and what is to be done."""

    until: Annotated[
        str,
        Parameter(
            converter=absolute,
            help="Take the past up to this moment (an ISO time, UTC if it names no zone, how long "
            "ago as in 2h, p07:1234, or an event's id) and what comes from now on; what came "
            "between is left out.",
        ),
    ] = ""
    except_session: Annotated[
        Words, Parameter(help="Leave sessions of this id out: everybody's.")
    ] = None
    except_user: Annotated[Words, Parameter(help="Leave this person out.")] = None
    except_agent: Annotated[Words, Parameter(help="Leave this agent out.")] = None
    except_origin: Annotated[
        Words, Parameter(help="Leave this platform, or who wanted a memory write, out.")
    ] = None
    whole: Annotated[
        Flag, Parameter(help="Take the whole history: also what the live one leaves out.")
    ] = False
    change: Annotated[Words, Parameter(name="--set", help="Change an option: key=value.")] = None
    no_verify: Annotated[
        Flag, Parameter(help="Swap also if the new state differs from the live one.")
    ] = False
    rollback: Annotated[str, Parameter(help="Let this provider's generation before serve.")] = ""
    drop: Annotated[
        str,
        Parameter(
            help="Give up what a rebuild of this one began; if nothing, drop all that do not serve."
        ),
    ] = ""
    reason: Annotated[str, Parameter(help="Why; it is kept with the generation.")] = ""
    execute: Annotated[Flag, Parameter(help="Do it; without, only say what would be done.")] = False

    def request(self, provider: str) -> "RebuildRequest":
        """Return what is asked for a provider, or of a rollback or drop.

        Raises:
            ConfigError: these options do not go together.
        """
        from memorybus.operations.rebuild.plan import RebuildRequest
        from memorybus.query.query import EVERYTHING

        query = self._query()
        if sum(map(bool, (provider, self.rollback, self.drop))) != 1:
            raise ConfigError("give one PROVIDER, or --rollback PROVIDER, or --drop PROVIDER")
        builds = self.until or self.whole or self.change or self.no_verify
        if not provider and (query != EVERYTHING or builds):
            raise ConfigError(
                "--rollback and --drop build nothing: leave out --set, --until, --whole, "
                "--except-… and --no-verify"
            )
        return RebuildRequest(
            provider=provider or self.rollback or self.drop,
            query=query,
            until=self.until,
            whole=self.whole,
            options=given(self.change or ()),
            verify=not self.no_verify,
            reason=self.reason,
            by=operator(),
        )

    def _query(self) -> "Query":
        from memorybus.query.query import Query

        return Query(
            except_sessions=tuple(self.except_session or ()),
            except_users=tuple(self.except_user or ()),
            except_agents=tuple(self.except_agent or ()),
            except_origins=tuple(self.except_origin or ()),
        )


NOT_SAID = RebuildOptions()


def run_rebuild(
    provider: Annotated[str, Parameter(help="The provider instance.")] = "",
    /,
    *,
    options: RebuildOptions = NOT_SAID,
    common: Common = DEFAULT,
) -> int:
    """Build a provider's state again from history, beside the live one; compare; swap in one step.

    Recalls and tools are served by the live one until the swap; for that the provider's lanes pause
    for a moment, and agents go on. The same command goes on with a rebuild that was interrupted.
    The generation before stands still and is kept: --rollback brings it up to date and swaps back,
    --drop removes it. What is left out stays out from then on, in later rebuilds, too (--whole
    takes it again), and so do options (--set changes them).

    For example:

    - `memorybus rebuild holographic --execute`
    - `memorybus rebuild holographic --until 2026-05-31T18:00 --reason "undo last night" --execute`
    - `memorybus rebuild builtin --except-user mallory --execute`
    - `memorybus rebuild --rollback holographic --execute`
    """
    output, wanted = common.output(), options.request(provider)
    settings = common.settings()
    if options.rollback:
        return _rolled_back(output, settings, wanted, execute=options.execute)
    if options.drop:
        return _dropped(output, settings, wanted, execute=options.execute)
    return _rebuilt(output, settings, wanted, execute=options.execute)


def _rebuilt(output: Output, settings: Settings, wanted: "RebuildRequest", *, execute: bool) -> int:
    from memorybus.operations.rebuild import carry_out
    from memorybus.operations.rebuild import plan as rebuild_plan

    if not execute:
        with (
            checked_stores(settings) as stores,
            steps(output, "plan", "events read", UNTOUCHED) as tell,
        ):
            plan = rebuild_plan.plan_rebuild(stores, wanted, SYSTEM, partial(tell, "plan"))
        return rebuild_view.planned(output, plan)
    with _at_work(output, settings, wanted, "rebuild") as work:
        done = carry_out.rebuild(work, wanted)
    return rebuild_view.done(output, done)


def _rolled_back(
    output: Output, settings: Settings, wanted: "RebuildRequest", *, execute: bool
) -> int:
    from memorybus.operations.rebuild import carry_out
    from memorybus.operations.rebuild import plan as rebuild_plan

    provider = wanted.provider
    if not execute:
        with checked_stores(settings) as stores:
            to = rebuild_plan.rollback_target(stores, provider)
        said = f"would bring {to} up to date and let it serve {provider} again"
        return rebuild_view.would(output, {"provider": provider, "to": to, "executed": False}, said)
    with _at_work(output, settings, wanted, "rollback") as work:
        done = carry_out.roll_back(work, wanted)
    return rebuild_view.done(output, done)


def _dropped(output: Output, settings: Settings, wanted: "RebuildRequest", *, execute: bool) -> int:
    from memorybus.operations.rebuild import carry_out
    from memorybus.operations.rebuild import drop as generation_drop

    if not execute:
        with checked_stores(settings) as stores:
            what = generation_drop.plan_drop(stores, wanted.provider)
        return rebuild_view.would(output, what, f"would drop {rebuild_view.named(what)}")
    with _at_work(output, settings, wanted, "drop") as work:
        gone = carry_out.drop(work, wanted)
    if output.json:
        output.result(gone)
        return 0
    if gone.dropped:
        output.show(visible(f"dropped {rebuild_view.named(gone)}"))
    for waiting in gone.waits:
        output.note(waiting, "yellow")
    return 0


@contextmanager
def _at_work(
    output: Output, settings: Settings, wanted: "RebuildRequest", what: str
) -> "Iterator[Rebuilder]":
    """Give a rebuilder that has the lock, and shows how far it is."""
    from memorybus.operations.rebuild.rebuild import open_rebuilder

    said = "interrupted: agents are served all along; the same command goes on where it was"
    with (
        steps(output, what, "places of the history", said) as tell,
        open_rebuilder(settings, wanted.provider, what, wanted.by, tell) as work,
    ):
        try:
            yield work
        except (KeyboardInterrupt, SystemExit):
            if what == "rebuild":
                _tell_way_out(output, work, wanted.provider)
            raise


def _tell_way_out(output: Output, work: "Rebuilder", provider: str) -> None:
    """Say how what was begun is given up, if it does not serve already."""
    from memorybus.operations.copies.generations import unfinished_copy

    with suppress(MemoryBusError):  # without Redis nobody knows
        if unfinished_copy(provider, "rebuild", work.stores.instances.look()):
            output.note(f"to give it up: memorybus rebuild --drop {provider} --execute", "yellow")


def run_rebuild_ls(*, common: Common = DEFAULT) -> int:
    """List the generations of all providers that have more than one.

    For example:

    - `memorybus rebuild ls`
    - `memorybus rebuild ls --json | jq '.[] | select(.state == "live")'`
    """
    from memorybus.operations.copies.generations import generations

    output = common.output()
    with checked_stores(common.settings()) as stores:
        sight = stores.instances.look()
    providers = sorted({one.provider for one in sight.all.values()} | set(sight.live))
    every = [generations(provider, sight) for provider in providers]
    found = [one for group in every if len(group) > 1 for one in group if not _is_gone(one)]
    none = "no provider was built again; memorybus rebuild PROVIDER would do so"
    return show_found(output, found, lambda: rebuild_view.table(found), none)


def _is_gone(one: "Generation") -> bool:
    """Say whether it is the first generation, and dropped; other dropped ones are listed."""
    return one.state == "dropped" and one.name == one.provider
