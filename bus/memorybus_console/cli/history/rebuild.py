"""``memorybus rebuild``: build a provider's state again from history, then swap it in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import App, Parameter
from memorybus.errors import ConfigError

from memorybus_console.cli.answers import ReasonOption, YesOption, act, shown
from memorybus_console.cli.options import (
    DEFAULT,
    Common,
    FlagOption,
    InstanceOption,
    RepeatedOption,
    parse_key_values,
    to_absolute_time,
)
from memorybus_console.result import IfEmpty

if TYPE_CHECKING:
    from memorybus.query.query import Query

    from memorybus_console.actions.action import Action
    from memorybus_console.actions.history import (
        PlannedRollback,
    )
    from memorybus_console.operations.copies.generations import Generation
    from memorybus_console.operations.rebuild.plan import RebuildPlan
    from memorybus_console.operations.rebuild.rebuild import Drop, RebuildResult

    _RebuildAction: TypeAlias = Action[RebuildPlan | PlannedRollback | Drop, RebuildResult | Drop]

_NEVER = "no provider was rebuilt yet; memorybus rebuild PROVIDER would do so"

_RESUMED = (
    "interrupted: agents are still served; the same command continues where this one stopped, and "
    "memorybus rebuild ls shows which generation serves"
)


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
    reason: ReasonOption = ""
    yes: YesOption = False

    def action(self, provider: str) -> "_RebuildAction":
        """Return the rebuild, the rollback or the drop that the options ask for."""
        from memorybus.query.query import EVERYTHING

        from memorybus_console.actions.history import DropGenerations, Rebuild, RollBack

        query = self._query()
        if sum(map(bool, (provider, self.rollback, self.drop))) != 1:
            raise ConfigError("give one PROVIDER, or --rollback PROVIDER, or --drop PROVIDER")
        builds = self.until or self.whole or self.change or self.no_verify
        if not provider and (query != EVERYTHING or builds):
            raise ConfigError(
                "--rollback and --drop build nothing: leave out --set, --until, --whole, "
                "--except-… and --no-verify"
            )
        if self.rollback:
            return RollBack(provider=self.rollback, reason=self.reason)
        if self.drop:
            return DropGenerations(provider=self.drop, reason=self.reason)
        return Rebuild(
            provider=provider,
            query=query,
            until=self.until,
            whole=self.whole,
            options=parse_key_values(self.change or ()),
            verify=not self.no_verify,
            reason=self.reason,
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


@shown
def run_rebuild(
    provider: InstanceOption = "",
    /,
    *,
    options: RebuildOptions = NO_REBUILD_OPTIONS,
    common: Common = DEFAULT,
) -> "RebuildPlan | RebuildResult | PlannedRollback | Drop | None":
    """Build a provider's state again from history, beside the live one; compare; swap in one step.

    The live generation serves recalls and tools until the swap. For the swap the provider's lanes
    pause for a moment; agents continue. The same command resumes a rebuild that was interrupted.
    The previous generation is kept, but receives no more events: --rollback brings it up to date
    and swaps back, --drop removes it. What is left out stays out in later rebuilds, too (--whole
    brings it back), and options stay as they are (--set changes them).

    For example:

    - `memorybus rebuild holographic --yes`
    - `memorybus rebuild holographic --until 2026-05-31T18:00 --reason "undo last night" --yes`
    - `memorybus rebuild builtin --except-user mallory --yes`
    - `memorybus rebuild --rollback holographic --yes`
    """
    return act(options.action(provider), common, yes=options.yes, interrupted=_RESUMED)


@shown
def run_rebuild_ls(*, common: Common = DEFAULT) -> Annotated["list[Generation]", IfEmpty(_NEVER)]:
    """List the generations of all providers that have more than one.

    For example:

    - `memorybus rebuild ls`
    - `memorybus rebuild ls --json | jq '.[] | select(.state == "live")'`
    """
    from memorybus_console.operations.copies.generations import list_generations
    from memorybus_console.operations.stores import checked_stores

    with checked_stores(common.settings()) as stores:
        return list_generations(stores.instances.read_view())


APP = App(
    name="rebuild",
    help="Build a provider's state again from history, beside the live one, then swap.",
)
APP.default(run_rebuild)
APP.command(run_rebuild_ls, name="ls")
