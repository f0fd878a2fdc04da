"""``memorybus provider pause|resume|retry-now|move|remove``: change which instances run, where."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from memorybus_console.cli.acting import ReasonOption, YesOption, act
from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import DEFAULT, Common, InstanceOption

if TYPE_CHECKING:
    from memorybus_console.operations.providers.lifecycle import PauseResult
    from memorybus_console.operations.providers.move import Move
    from memorybus_console.operations.providers.removal import Removal
    from memorybus_console.operations.providers.retry_now import RetryNow


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
