"""``memorybus provider pause|resume|remove``: change which instances run."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from memorybus.errors import ConfigError

from memorybus_console.cli.options import DEFAULT, Common, ExecuteOption, InstanceOption
from memorybus_console.cli.progress import checked_stores, note_on_interrupt
from memorybus_console.views.output import NOTHING_DONE, Output
from memorybus_console.views.safe import visible

if TYPE_CHECKING:
    from memorybus_console.operations.providers.lifecycle import PauseResult
    from memorybus_console.operations.providers.removal import Removal


def run_pause(
    name: InstanceOption,
    /,
    *,
    reason: Annotated[str, Parameter(help="Why; status and doctor show it.")],
    execute: ExecuteOption = False,
    common: Common = DEFAULT,
) -> int:
    """Pause an instance's lanes: no events are applied to it, and none is lost.

    Its memories are still recalled. The pause lasts until `memorybus provider resume`, even if a
    rebuild swaps meanwhile, because a provider's name stands for the generation that serves it.

    For example:

    - `memorybus provider pause mem0 --reason "its quota is used up"`
    - `memorybus provider pause mem0 --reason "its quota is used up" --execute`
    """
    from memorybus_console.cli.options import operator
    from memorybus_console.operations.providers import lifecycle

    output = common.output()
    if not reason.strip():
        raise ConfigError("--reason must say why")
    with checked_stores(common.settings()) as stores:
        if execute:
            done = lifecycle.pause_instance(stores, name, reason, operator())
        else:
            done = lifecycle.plan_pause(stores, name, reason)
    return _show_pause(output, done)


def run_resume(
    name: InstanceOption, /, *, execute: ExecuteOption = False, common: Common = DEFAULT
) -> int:
    """Resume an instance's lanes where they were paused.

    For example:

    - `memorybus provider resume mem0`
    - `memorybus provider resume mem0 --execute`
    """
    from memorybus_console.operations.providers import lifecycle

    output = common.output()
    with checked_stores(common.settings()) as stores:
        done = (lifecycle.resume_instance if execute else lifecycle.plan_resume)(stores, name)
    return _show_pause(output, done)


def _show_pause(output: Output, done: "PauseResult") -> int:
    if output.json:
        output.result(done)
        return 0
    waits = f"{done.backlog} events wait"
    who = f"{done.name}, which serves {done.serves}" if done.serves else done.name
    would = "" if done.executed else "would be "
    if done.paused and done.changed:
        output.show(visible(f"{who} {would or 'is '}paused: {done.reason}; {waits}"))
        output.note(
            "its lanes stop within a heartbeat; its memories are still recalled; nothing is lost: "
            "it catches up when it is resumed"
        )
    elif done.paused:
        output.show(visible(f"{who} is paused already: {done.reason}; {waits}"))
    elif done.changed:
        output.show(visible(f"{who} {would or 'is '}resumed (paused: {done.reason}): {waits}"))
    else:
        output.show(visible(f"{who} is not paused; {waits}"))
    if done.changed and not done.executed:
        output.note(NOTHING_DONE, "yellow")
    return 0


def run_remove(
    name: InstanceOption,
    /,
    *,
    delete_state: Annotated[
        bool, Parameter(negative="", help="Also delete its state in data_dir.")
    ] = False,
    reason: Annotated[str | None, Parameter(help="Why; running workers show it.")] = None,
    execute: ExecuteOption = False,
    common: Common = DEFAULT,
) -> int:
    """Remove an instance's lanes and dead letters from Redis, once the settings do not name it.

    What to delete from memorybus.toml before is shown. Its state stays where it is, unless
    --delete-state is given. The history keeps every event.

    For example:

    - `memorybus provider remove holographic`
    - `memorybus provider remove holographic --reason "moved to Postgres" --execute`
    """
    from memorybus_console.cli.options import operator
    from memorybus_console.operations.providers import removal

    output, settings = common.output(), common.settings()
    if execute and not (reason or "").strip():
        raise ConfigError("--reason must say why, with --execute")
    locked = (
        removal.open_for_removal(settings, name, operator())
        if execute
        else checked_stores(settings)
    )
    again = f"interrupted: the same command removes what is left of {name}"
    with note_on_interrupt(output, again), locked as stores:
        what = removal.plan_removal(stores, name, delete_state=delete_state)
        if execute:
            what = removal.remove_provider(stores, what, reason or "", operator())
    if output.json:
        output.result(what)
        return 0
    _show_removed(output, what)
    return 0


def _show_removed(output: Output, what: "Removal") -> None:
    if what.block:
        output.show(visible(f"first {what.block}"))
    verb = "removed" if what.executed else "would remove"
    parked = f", {what.parked} parked events" if what.parked else ""
    along = f" with {what.generation}, which serves it" if what.generation else ""
    output.show(visible(f"{verb} {what.name}{along}: {what.lanes} lanes in Redis{parked}"))
    if what.state or what.elsewhere:
        output.show(visible(f"its state {_describe_state(what)}: {what.state or what.elsewhere}"))
    if not what.executed:
        output.note(NOTHING_DONE, "yellow")
    elif what.workers:
        output.note(
            f"these workers were told to serve it, and {_describe_workers(what)} until they are "
            f"restarted: {', '.join(what.workers)}",
            "yellow",
        )


def _describe_workers(what: "Removal") -> str:
    return "fail to recall from it" if what.generation else "recall from it"


def _describe_state(what: "Removal") -> str:
    if not what.delete_state:
        return "stays"
    return "is deleted" if what.executed else "would be deleted"
