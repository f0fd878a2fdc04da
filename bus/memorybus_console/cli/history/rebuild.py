"""``memorybus rebuild``: build a provider's state again from history, then swap it in."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, MemoryBusError

from memorybus_console.cli.key_values import parse_key_values
from memorybus_console.cli.options import (
    CARE,
    DEFAULT,
    Common,
    ExecuteOption,
    FlagOption,
    InstanceOption,
    RepeatedOption,
    operator,
    to_absolute_time,
)
from memorybus_console.cli.progress import checked_stores, show_bar, show_list
from memorybus_console.views import rebuild as rebuild_view
from memorybus_console.views.output import Output
from memorybus_console.views.safe import visible

if TYPE_CHECKING:
    from memorybus.query.query import Query

    from memorybus_console.operations.copies.generations import Generation
    from memorybus_console.operations.rebuild.plan import RebuildRequest
    from memorybus_console.operations.rebuild.rebuild import Rebuilder


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
    """Which part of the history a rebuild uses, and which action to take."""

    until: Annotated[
        str,
        Parameter(
            converter=to_absolute_time,
            help="Use the history up to this moment (an ISO time, UTC if it names no zone, how "
            "long ago as in 2h, p07:1234, or an event's id) and new events from now on; leave out "
            "what came between.",
        ),
    ] = ""
    except_session: Annotated[
        RepeatedOption, Parameter(help="Leave out sessions of this id, of every user.")
    ] = None
    except_user: Annotated[RepeatedOption, Parameter(help="Leave out this person.")] = None
    except_agent: Annotated[RepeatedOption, Parameter(help="Leave out this agent.")] = None
    except_origin: Annotated[
        RepeatedOption, Parameter(help="Leave out this platform, or this origin of memory writes.")
    ] = None
    whole: Annotated[
        FlagOption,
        Parameter(help="Use the whole history, also what the live generation leaves out."),
    ] = False
    change: Annotated[
        RepeatedOption, Parameter(name="--set", help="Change an option: key=value.")
    ] = None
    no_verify: Annotated[
        FlagOption, Parameter(help="Swap even if the new state differs from the live one.")
    ] = False
    rollback: Annotated[str, Parameter(help="Go back to this provider's previous generation.")] = ""
    drop: Annotated[
        str,
        Parameter(
            help="Give up an unfinished rebuild of this provider; if there is none, drop all its "
            "generations that do not serve."
        ),
    ] = ""
    reason: Annotated[str, Parameter(help="Why; it is kept with the generation.")] = ""
    execute: ExecuteOption = False

    def request(self, provider: str) -> "RebuildRequest":
        """Return the request for a rebuild, a rollback or a drop.

        Raises:
            ConfigError: these options do not go together.
        """
        from memorybus.query.query import EVERYTHING

        from memorybus_console.operations.rebuild.plan import RebuildRequest

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
            options=parse_key_values(self.change or ()),
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


NO_REBUILD_OPTIONS = RebuildOptions()


def run_rebuild(
    provider: InstanceOption = "",
    /,
    *,
    options: RebuildOptions = NO_REBUILD_OPTIONS,
    common: Common = DEFAULT,
) -> int:
    """Build a provider's state again from history, beside the live one; compare; swap in one step.

    The live generation serves recalls and tools until the swap. For the swap the provider's lanes
    pause for a moment; agents continue. The same command resumes a rebuild that was interrupted.
    The previous generation is kept, but receives no more events: --rollback brings it up to date
    and swaps back, --drop removes it. What is left out stays out in later rebuilds, too (--whole
    brings it back), and options stay as they are (--set changes them).

    For example:

    - `memorybus rebuild holographic --execute`
    - `memorybus rebuild holographic --until 2026-05-31T18:00 --reason "undo last night" --execute`
    - `memorybus rebuild builtin --except-user mallory --execute`
    - `memorybus rebuild --rollback holographic --execute`
    """
    output, wanted = common.output(), options.request(provider)
    settings = common.settings()
    if options.rollback:
        return _roll_back(output, settings, wanted, execute=options.execute)
    if options.drop:
        return _drop(output, settings, wanted, execute=options.execute)
    return _rebuild(output, settings, wanted, execute=options.execute)


def _rebuild(output: Output, settings: Settings, wanted: "RebuildRequest", *, execute: bool) -> int:
    from memorybus_console.operations.rebuild import carry_out
    from memorybus_console.operations.rebuild import plan as rebuild_plan

    if not execute:
        with checked_stores(settings) as stores:
            plan = rebuild_plan.plan_rebuild(stores, wanted, SYSTEM)
        return rebuild_view.show_plan(output, plan)
    with _locked_rebuilder(output, settings, wanted, "rebuild") as work:
        done = carry_out.rebuild(work, wanted)
    return rebuild_view.show_result(output, done)


def _roll_back(
    output: Output, settings: Settings, wanted: "RebuildRequest", *, execute: bool
) -> int:
    from memorybus_console.operations.rebuild import carry_out
    from memorybus_console.operations.rebuild import plan as rebuild_plan

    provider = wanted.provider
    if not execute:
        with checked_stores(settings) as stores:
            to = rebuild_plan.rollback_target(stores, provider)
        said = f"would bring {to} up to date and let it serve {provider} again"
        return rebuild_view.show_intent(
            output, {"provider": provider, "to": to, "executed": False}, said
        )
    with _locked_rebuilder(output, settings, wanted, "rollback") as work:
        done = carry_out.roll_back(work, wanted)
    return rebuild_view.show_result(output, done)


def _drop(output: Output, settings: Settings, wanted: "RebuildRequest", *, execute: bool) -> int:
    from memorybus_console.operations.rebuild import carry_out
    from memorybus_console.operations.rebuild import drop as generation_drop

    if not execute:
        with checked_stores(settings) as stores:
            what = generation_drop.plan_drop(stores, wanted.provider)
        return rebuild_view.show_intent(
            output, what, f"would drop {rebuild_view.describe_drop(what)}"
        )
    with _locked_rebuilder(output, settings, wanted, "drop") as work:
        gone = carry_out.drop(work, wanted)
    if output.json:
        output.result(gone)
        return 0
    if gone.dropped:
        output.show(visible(f"dropped {rebuild_view.describe_drop(gone)}"))
    for waiting in gone.waits:
        output.note(waiting, "yellow")
    return 0


@contextmanager
def _locked_rebuilder(
    output: Output, settings: Settings, wanted: "RebuildRequest", what: str
) -> "Iterator[Rebuilder]":
    """Yield a rebuilder that holds the provider's lock and shows its progress."""
    from memorybus_console.operations.rebuild.rebuild import open_rebuilder

    said = "interrupted: agents are still served; the same command continues where this one stopped"
    with (
        show_bar(output, what, "places of the history", said) as tell,
        open_rebuilder(settings, wanted.provider, what, wanted.by, tell) as work,
    ):
        try:
            yield work
        except (KeyboardInterrupt, SystemExit):
            if what == "rebuild":
                _note_way_out(output, work, wanted.provider)
            raise


def _note_way_out(output: Output, work: "Rebuilder", provider: str) -> None:
    """Print how to give up the rebuild that was begun, unless its generation serves already."""
    from memorybus_console.operations.copies.generations import unfinished_copy

    with suppress(MemoryBusError):  # without Redis that is unknown
        if unfinished_copy(provider, "rebuild", work.stores.instances.read_view()):
            output.note(f"to give it up: memorybus rebuild --drop {provider} --execute", "yellow")


def run_rebuild_ls(*, common: Common = DEFAULT) -> int:
    """List the generations of all providers that have more than one.

    For example:

    - `memorybus rebuild ls`
    - `memorybus rebuild ls --json | jq '.[] | select(.state == "live")'`
    """
    from memorybus_console.operations.copies.generations import generations

    output = common.output()
    with checked_stores(common.settings()) as stores:
        view = stores.instances.read_view()
    providers = sorted({one.provider for one in view.all.values()} | set(view.live))
    every = [generations(provider, view) for provider in providers]
    found = [
        one for group in every if len(group) > 1 for one in group if not _is_dropped_first(one)
    ]
    none = "no provider was rebuilt yet; memorybus rebuild PROVIDER would do so"
    return show_list(output, found, lambda: rebuild_view.table(found), none)


def _is_dropped_first(one: "Generation") -> bool:
    """Say whether a generation is the first one and dropped: only other dropped ones are listed."""
    return one.state == "dropped" and one.name == one.provider
