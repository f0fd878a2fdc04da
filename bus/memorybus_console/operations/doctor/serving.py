"""Checks for the doctor what serves the log: workers, providers, copies, rebuilds, recalls."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import LogUnavailable, MemoryBusError
from memorybus.health import findings
from memorybus.health.finding import Check
from memorybus.health.findings import START_REMEDY
from memorybus.health.monitor import read_status
from memorybus.health.status import ProviderStatus, Status
from memorybus.jobs.inspect import InspectionFailed, InstanceInspector
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.registry.instances import (
    Instances,
    InstancesView,
    Live,
    describe_ignored,
    ignored_entries,
    live_name,
)
from memorybus.registry.pauses import prepared_copy
from memorybus.registry.rebuild_lock import running_rebuilds

from memorybus_console.operations.copies.generations import (
    command_to_finish_swap,
    unfinished_copy,
    unfinished_swap,
)
from memorybus_console.operations.providers.inventory import (
    ListedProvider,
    check_homes,
    list_instances,
)
from memorybus_console.operations.stores import Stores

MOVES_WITHIN = 3.0
"""Seconds within which a backlog must shrink to count as being worked on."""

LOOK_EVERY = 0.1


def run_guarded(name: str, fix: str, check: Callable[[], Check]) -> Check:
    """Run a check; if it raises, return a failed one with this remedy, or that of Redis."""
    try:
        return check()
    except LogUnavailable as error:
        return Check(name=name, ok=False, found=error.problem, fix=error.remedy or fix)
    except (MemoryBusError, OSError) as error:
        return Check(name=name, ok=False, found=str(error), fix=fix)


def check_serving(settings: Settings, clock: Clock) -> Iterator[Check]:
    """Check everything that serves the log, in order."""
    try:
        status = read_status(settings)
    except MemoryBusError as error:
        yield Check(name="worker", ok=False, found=str(error), fix="do as the message says")
        return
    yield check_worker(status, clock.now_ms())
    yield run_guarded("homes", START_REMEDY, lambda: check_homes(list_instances(settings)))
    yield run_guarded("notes", START_REMEDY, lambda: check_notes(list_instances(settings)))
    yield Check.from_findings("dead letters", findings.find_dead_letters(status), "none")
    yield Check.from_findings(
        "backends", findings.find_failing(status), "no provider says that its calls fail"
    )
    yield Check.from_findings("paused", findings.find_paused(status), "no provider is paused")
    yield run_guarded("copies", START_REMEDY, lambda: check_copies(settings))
    yield run_guarded("rebuilds", START_REMEDY, lambda: check_rebuilds(settings))
    if status.workers:
        yield check_providers(status, settings.providers)
        yield run_guarded("backlog", START_REMEDY, lambda: check_backlog(settings, status, clock))
        waiting = sum(one.queued for one in status.jobs)
        well = f"{waiting} wait" if waiting else "none wait"
        yield Check.from_findings(
            "recalls", findings.find_recall_trouble(status.jobs, clock.now_ms()), well
        )
        yield run_guarded("health", START_REMEDY, lambda: check_health(settings, clock))


def check_worker(status: Status, now_ms: int) -> Check:
    """Check that a worker is alive, and that none disappeared."""
    found = [
        *findings.find_no_worker(status, now_ms),
        *findings.find_gone_workers(status, now_ms),
    ]
    return Check.from_findings("worker", found, f"{len(status.workers)} alive")


def check_providers(status: Status, configured: Sequence[str]) -> Check:
    """Check that every provider is served in all its lanes."""
    owned = [one.live or one.name for one in status.providers if one.lanes_owned == one.lanes]
    well = f"every lane of {', '.join(owned)} is owned" if owned else "none has lanes now"
    return Check.from_findings("providers", findings.find_unserved(status, configured), well)


def check_notes(found: Sequence[ListedProvider]) -> Check:
    """Show the notes that instances give for people; this never fails."""
    text = "; ".join(f"{one.name}: {one.note}" for one in found if one.note)
    return Check(name="notes", ok=True, found=text or "no provider has any")


def check_health(settings: Settings, clock: Clock) -> Check:
    """Ask the live instances for the health of their backends, where a worker can answer.

    Raises:
        LogUnavailable: Redis is away.
    """
    with Stores(settings) as stores:
        served, live = stores.roster.job_providers(), stores.instances.live()
        known = stores.roster.providers()
    asked = [name for name, info in known.items() if info.examines and name in served]
    ill = {name: why for name in asked if (why := _describe_illness(settings, clock, name, live))}
    if not ill:
        well = f"{', '.join(asked)}: well" if asked else "no provider can be asked"
        return Check(name="health", ok=True, found=well)
    found = "; ".join(f"{name}: {why}" for name, why in ill.items())
    fix = "see to what the provider names; memorybus provider test NAME tries each step"
    return Check(name="health", ok=False, found=found, fix=fix)


def _describe_illness(settings: Settings, clock: Clock, name: str, live: Mapping[str, Live]) -> str:
    """Return why an instance is not healthy; "" if it is."""
    try:
        return InstanceInspector(settings, clock).health(name, live_name(name, live))
    except InspectionFailed as error:
        return str(error)


# -- backlog --------------------------------------------------------------------------------------


def check_backlog(settings: Settings, status: Status, clock: Clock) -> Check:
    """Check that providers with a backlog catch up; wait up to `MOVES_WITHIN` if one has any."""
    behind = [one for one in status.providers if one.backlog and (one.lanes_owned or one.failing)]
    behind = [one for one in behind if not one.paused]
    stuck = behind
    deadline = clock.monotonic() + MOVES_WITHIN
    while stuck and clock.monotonic() < deadline:
        clock.sleep(LOOK_EVERY)
        stuck = find_unmoved(stuck, read_status(settings).providers)
    if stuck:
        named = ", ".join(f"{one.name} ({one.backlog} events)" for one in stuck)
        fix = "read the worker's log: it says what its provider waits for"
        return Check(name="backlog", ok=False, found=f"does not move: {named}", fix=fix)
    return Check(name="backlog", ok=True, found="being worked on" if behind else "none")


def find_unmoved(
    before: Iterable[ProviderStatus], after: Iterable[ProviderStatus]
) -> list[ProviderStatus]:
    """Return those of `before` that have applied nothing since and whose backlog did not shrink."""
    now = {one.name: one for one in after}
    return [
        one
        for one in before
        if one.name in now
        and now[one.name].applied <= one.applied
        and now[one.name].backlog >= one.backlog
    ]


# -- copies ---------------------------------------------------------------------------------------


def check_copies(settings: Settings) -> Check:
    """Check that memorybus itself wrote every entry of the copies' hash.

    Raises:
        LogUnavailable: Redis is away.
    """
    keys = Keys(settings.namespace)
    redis = connect_redis(settings)
    try:
        strange = ignored_entries(Instances(redis, keys).read_view(), settings.providers)
    finally:
        redis.close()
    if not strange:
        return Check(name="copies", ok=True, found="every record is of a copy")
    return Check(
        name="copies",
        ok=False,
        found=f"{keys.instances}: {describe_ignored(strange)}",
        fix=f"no command of memorybus made them: see who can write to this Redis, then delete them "
        f"(redis-cli hdel {keys.instances} NAME)",
    )


# -- rebuilds -------------------------------------------------------------------------------------


def check_rebuilds(settings: Settings) -> Check:
    """Check that no killed rebuild or verification left something behind.

    Raises:
        LogUnavailable: Redis is away.
    """
    redis, keys = connect_redis(settings), Keys(settings.namespace)
    try:
        view = Instances(redis, keys).read_view()
        return check_left_behind(view, running_rebuilds(redis, keys, _all_providers(view)).keys())
    finally:
        redis.close()


def check_left_behind(view: InstancesView, busy: Collection[str]) -> Check:
    """Check what killed commands left at providers on which no live command works; pure."""
    paused = sorted(name for name, why in view.pauses.items() if prepared_copy(why))
    left = [name for name in paused if _provider_of(name, view) not in busy]
    if left:
        return _check_standing(left, view)
    found, fix = next(
        _unfinished_work(view, busy), ("no rebuild or verification was interrupted", "")
    )
    return Check(name="rebuilds", ok=True, found=found, fix=fix)


def _check_standing(left: Sequence[str], view: InstancesView) -> Check:
    """Return the check of instances that a killed command left paused; it fails if one is live."""
    serving = [n for n in left if live_name(_provider_of(n, view), view.live) == n]
    named = "; ".join(f"{name}: {view.pauses[name].reason}" for name in left)
    return Check(
        name="rebuilds",
        ok=not serving,
        found=f"left stopped by a command that is gone: {named}",
        fix="the same command continues"
        + (f"; or: memorybus provider resume {serving[0]} --execute" if serving else ""),
    )


def _unfinished_work(view: InstancesView, busy: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield what killed commands did not finish, and what to do about it."""
    for name in sorted(_all_providers(view) - set(busy)):
        begun = unfinished_copy(name, "rebuild", view)
        if unfinished_swap(name, view):
            yield (
                f"{name} was swapped by a command that is gone before it had ended",
                command_to_finish_swap(name, view),
            )
        elif begun is not None:
            yield (
                f"{begun.name} follows the log unused: its rebuild was cut short, or differed",
                f"the same command continues; or: memorybus rebuild --drop {name} --execute",
            )
    for one in view.all.values():
        if one.purpose == "verify" and not one.dropped and one.provider not in busy:
            yield f"{one.name} was left by a verification that is gone", "memorybus up removes it"


def _all_providers(view: InstancesView) -> set[str]:
    made = {one.provider for one in view.all.values()}
    return made | set(view.live) | {_provider_of(name, view) for name in view.pauses}


def _provider_of(name: str, view: InstancesView) -> str:
    known = view.all.get(name)
    return known.provider if known else name
