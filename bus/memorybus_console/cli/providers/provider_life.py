"""``memorybus provider ls|test|pause|resume|retry-now|move|remove``: which instances run, where."""

from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter
from memorybus.processes.reports import TrialStep, TrialTerms
from rich.table import Table
from rich.text import Text

from memorybus_console.cli.answers import ReasonOption, YesOption, act, shown
from memorybus_console.cli.options import DEFAULT, Common, InstanceOption, not_negative
from memorybus_console.cli.providers.dialogue import step_line
from memorybus_console.result import Presentation, Stepwise
from memorybus_console.views.render import table

if TYPE_CHECKING:
    from memorybus_console.operations.providers.inventory import ListedProvider
    from memorybus_console.operations.providers.lifecycle import PauseResult, RetryNow
    from memorybus_console.operations.providers.removal import Move, Removal


@shown
def run_pause(
    name: InstanceOption,
    /,
    *,
    reason: Annotated[str, Parameter(help="Reason, written to the log; status shows it.")] = "",
    common: Common = DEFAULT,
) -> "PauseResult | None":
    """Pause an instance's lanes: no events are applied to it, and none is lost.

    Its memories are still recalled. The pause lasts until `memorybus provider resume`, even if a
    rebuild swaps meanwhile, because a provider's name stands for the generation that serves it.

    For example:

    - `memorybus provider pause mem0 --reason "its quota is used up"`
    """
    from memorybus_console.actions.providers import PauseProvider

    return act(PauseProvider(name=name, reason=reason), common)


@shown
def run_resume(name: InstanceOption, /, *, common: Common = DEFAULT) -> "PauseResult | None":
    """Resume an instance's lanes where they were paused.

    For example:

    - `memorybus provider resume mem0`
    """
    from memorybus_console.actions.providers import ResumeProvider

    return act(ResumeProvider(name=name), common)


@shown
def run_retry_now(
    name: InstanceOption,
    /,
    *,
    parked: Annotated[
        bool, Parameter(negative="", help="Also apply its dead letters again.")
    ] = False,
    common: Common = DEFAULT,
) -> "RetryNow | None":
    """Retry at once whatever waits for its next try, because a backend works again.

    After failures, calls wait for up to half a minute. With this command every worker of the
    instance, within a heartbeat, probes the backend and retries failing events and halted lanes. A
    failed try counts as usual.

    For example:

    - `memorybus provider retry-now mem0`
    - `memorybus provider retry-now mem0 --parked`
    """
    from memorybus_console.actions.providers import RetryProviderNow

    return act(RetryProviderNow(name=name, parked=parked), common)


@shown
def run_move(
    name: Annotated[str, Parameter(help="The local provider instance.")],
    /,
    *,
    force: Annotated[
        bool, Parameter(negative="", help="Do it even while live workers own its lanes.")
    ] = False,
    reason: ReasonOption = "",
    yes: YesOption = False,
    common: Common = DEFAULT,
) -> "Move | None":
    """Make this data directory the home of a local provider: its lanes and recalls stay here.

    Copy the state here first, then run this on the new host. See docs/operations.md.

    For example:

    - `memorybus provider move builtin`
    - `memorybus provider move builtin --yes --data-dir /srv/memorybus`
    """
    from memorybus_console.actions.providers import MoveProvider

    return act(MoveProvider(name=name, force=force, reason=reason), common, yes=yes)


@shown
def run_remove(
    name: InstanceOption,
    /,
    *,
    delete_state: Annotated[
        bool, Parameter(negative="", help="Also delete its state in data_dir.")
    ] = False,
    reason: ReasonOption = "",
    yes: YesOption = False,
    common: Common = DEFAULT,
) -> "Removal | None":
    """Remove an instance's lanes and dead letters from Redis, once the settings do not name it.

    What to delete from memorybus.toml before is shown. Its state stays where it is, unless
    --delete-state is given. The history keeps every event.

    For example:

    - `memorybus provider remove holographic`
    - `memorybus provider remove holographic --reason "moved to Postgres" --yes`
    """
    from memorybus_console.actions.providers import RemoveProvider

    action = RemoveProvider(name=name, delete_state=delete_state, reason=reason)
    again = f"interrupted: the same command removes what is left of {name}"
    return act(action, common, yes=yes, interrupted=again)


@shown
def run_ls(*, common: Common = DEFAULT) -> "Presentation[list[ListedProvider]]":
    """List the provider instances: kind, delivery class, home, lanes, backlog.

    For example:

    - `memorybus provider ls`
    - `memorybus provider ls --json | jq '.[] | select(.here == false)'`
    """
    from memorybus_console.operations.providers.inventory import list_instances

    instances = list_instances(common.settings())
    return Presentation(instances, [_table(instances)])


def _table(providers: "list[ListedProvider]") -> Table:
    rows = (
        (
            *(each.name, each.kind, each.delivery or "never served", _home(each)),
            *(f"{each.lanes_owned}/{each.lanes}", each.backlog, _note_text(each)),
        )
        for each in providers
    )
    heads = ("provider", "kind", "delivery", "home", "lanes", "backlog", "note")
    return table(heads, rows, texts=("note",))


def _note_text(provider: "ListedProvider") -> str:
    """Return what serves in the instance's place, whether it is paused, and its own note."""
    paused = f"paused: {provider.paused}" if provider.paused else ""
    live = f"{provider.live} serves in its place" if provider.live else ""
    return "; ".join(part for part in (live, paused, provider.note) if part)


def _home(provider: "ListedProvider") -> str:
    from memorybus_console.operations.providers.inventory import describe_home

    if provider.home is None:
        return "anywhere" if provider.placement == "shared" else "none yet"
    return "here" if provider.here else describe_home(provider.home)


class Tried(msgspec.Struct, frozen=True):
    """The result of trying an instance."""

    provider: str
    ok: bool
    steps: list[TrialStep]


@shown
def run_test(
    name: InstanceOption,
    /,
    *,
    wait: Annotated[
        float,
        Parameter(
            help="Seconds in which recalls must find what was written.",
            validator=not_negative,
        ),
    ] = 10.0,
    agent: Annotated[
        str, Parameter(help="The invented agent for whom it writes, and whom it erases again.")
    ] = "provider-test",
    user: Annotated[
        str,
        Parameter(
            help="The person, for a provider that serves one person; then a turn stays there."
        ),
    ] = "provider-test",
    common: Common = DEFAULT,
) -> "Stepwise[Tried]":
    """Open an instance as a worker does, write to it, recall what was written, and erase it.

    It writes for an agent and a person that do not exist, and no event passes through the log. Exit
    code 1 if a step fails; the step shows the exact error and what to do.

    For example:

    - `memorybus provider test holographic`
    - `memorybus provider test honcho --wait 60 --json`
    """
    from memorybus_console.operations.providers.setup import try_provider

    steps = try_provider(common.settings(), name, TrialTerms(wait, agent, user))
    return Stepwise(_try(name, steps))


def _try(name: str, steps: Iterable[TrialStep]) -> Generator[Text, None, Presentation[Tried]]:
    done = []
    for step in steps:
        done.append(step)
        yield step_line(step)
    ok = all(step.ok for step in done)
    return Presentation(Tried(name, ok, done), (), code=int(not ok))
