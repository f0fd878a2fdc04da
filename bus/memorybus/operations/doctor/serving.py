"""The doctor's checks of what serves the log: workers, providers, copies, rebuilds, recalls."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.health import services
from memorybus.health.finding import Check
from memorybus.health.monitor import Status, read_status
from memorybus.health.providers import ProviderStatus
from memorybus.health.services import START
from memorybus.jobs.inspect import InspectionFailed, InstanceInspector
from memorybus.operations.copies.generations import ending, unended, unfinished
from memorybus.operations.providers.inventory import ListedProvider, check_homes, instances
from memorybus.operations.stores import Stores
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

MOVES_WITHIN = 3.0
"""Seconds in which a backlog has to become smaller to count as being worked on."""

LOOK_EVERY = 0.1


def guarded(name: str, fix: str, check: Callable[[], Check]) -> Check:
    """Run a check; return a failed one, with this remedy, if it cannot be made."""
    try:
        return check()
    except (MemoryBusError, OSError) as error:
        return Check(name=name, ok=False, found=str(error), fix=fix)


def check_serving(settings: Settings, clock: Clock) -> Iterator[Check]:
    """Check all that serves the log, in order."""
    try:
        status = read_status(settings)
    except MemoryBusError as error:
        yield Check(name="worker", ok=False, found=str(error), fix=START)
        return
    yield worker(status)
    yield guarded("homes", START, lambda: check_homes(instances(settings)))
    yield guarded("notes", START, lambda: notes(instances(settings)))
    yield Check.from_findings("dead letters", services.find_dead_letters(status), "none")
    yield Check.from_findings(
        "backends", services.find_failing(status), "no provider says that its calls fail"
    )
    yield Check.from_findings("paused", services.find_paused(status), "no provider is")
    yield guarded("copies", START, lambda: copies(settings))
    yield guarded("rebuilds", START, lambda: rebuilds(settings))
    if status.workers:
        yield providers(status, settings.providers)
        yield guarded("backlog", START, lambda: backlog(settings, status, clock))
        waiting = sum(one.queued for one in status.jobs)
        well = f"{waiting} wait" if waiting else "none wait"
        yield Check.from_findings(
            "recalls", services.find_recall_trouble(status.jobs, clock.now_ms()), well
        )
        yield guarded("health", START, lambda: health(settings, clock))


def worker(status: Status) -> Check:
    """Check that a worker is alive."""
    return Check.from_findings(
        "worker", services.find_no_worker(status), f"{len(status.workers)} alive"
    )


def providers(status: Status, configured: Sequence[str]) -> Check:
    """Check that every provider is served in all its lanes."""
    owned = [one.live or one.name for one in status.providers if one.lanes_owned == one.lanes]
    well = f"every lane of {', '.join(owned)} is owned" if owned else "none has lanes now"
    return Check.from_findings("providers", services.find_unserved(status, configured), well)


def notes(found: Sequence[ListedProvider]) -> Check:
    """Show what instances want people to know; nothing is wrong with that."""
    said = "; ".join(f"{one.name}: {one.note}" for one in found if one.note)
    return Check(name="notes", ok=True, found=said or "no provider has any")


def health(settings: Settings, clock: Clock) -> Check:
    """Ask the instances that serve how their backends are, where a worker can be asked.

    Raises:
        LogUnavailable: Redis is away.
    """
    with Stores(settings) as stores:
        served, live = stores.roster.job_providers(), stores.instances.live()
        known = stores.roster.providers()
    asked = [name for name, info in known.items() if info.examines and name in served]
    ill = {name: why for name in asked if (why := _illness(settings, clock, name, live))}
    if not ill:
        well = f"{', '.join(asked)}: well" if asked else "no provider can be asked"
        return Check(name="health", ok=True, found=well)
    found = "; ".join(f"{name}: {why}" for name, why in ill.items())
    fix = "see to what the provider names; memorybus provider test NAME tries each step"
    return Check(name="health", ok=False, found=found, fix=fix)


def _illness(settings: Settings, clock: Clock, name: str, live: Mapping[str, Live]) -> str:
    """Return why an instance could not serve, "" if it is well."""
    try:
        return InstanceInspector(settings, clock).health(name, live_name(name, live))
    except InspectionFailed as error:
        return str(error)


# -- backlog --------------------------------------------------------------------------------------


def backlog(settings: Settings, status: Status, clock: Clock) -> Check:
    """Check that whoever is behind catches up; waits up to `MOVES_WITHIN` if somebody is."""
    behind = [one for one in status.providers if one.backlog and (one.lanes_owned or one.failing)]
    behind = [one for one in behind if not one.paused]
    stuck = behind
    deadline = clock.monotonic() + MOVES_WITHIN
    while stuck and clock.monotonic() < deadline:
        clock.sleep(LOOK_EVERY)
        stuck = unmoved(stuck, read_status(settings).providers)
    if stuck:
        named = ", ".join(f"{one.name} ({one.backlog} events)" for one in stuck)
        fix = "read the worker's log: it says what its provider waits for"
        return Check(name="backlog", ok=False, found=f"does not move: {named}", fix=fix)
    return Check(name="backlog", ok=True, found="being worked on" if behind else "none")


def unmoved(
    before: Iterable[ProviderStatus], after: Iterable[ProviderStatus]
) -> list[ProviderStatus]:
    """Return those of `before` that have applied nothing since and are as far behind."""
    now = {one.name: one for one in after}
    return [
        one
        for one in before
        if one.name in now
        and now[one.name].applied <= one.applied
        and now[one.name].backlog >= one.backlog
    ]


# -- copies ---------------------------------------------------------------------------------------


def copies(settings: Settings) -> Check:
    """Check that memorybus made every entry of the copies' hash.

    Raises:
        LogUnavailable: Redis is away.
    """
    keys = Keys(settings.namespace)
    redis = connect_redis(settings)
    try:
        strange = ignored_entries(Instances(redis, keys).look(), settings.providers)
    finally:
        redis.close()
    if not strange:
        return Check(name="copies", ok=True, found="every entry is one")
    return Check(
        name="copies",
        ok=False,
        found=f"{keys.instances}: {describe_ignored(strange)}",
        fix=f"no command of memorybus made them: see who can write to this Redis, then delete them "
        f"(redis-cli hdel {keys.instances} NAME)",
    )


# -- rebuilds -------------------------------------------------------------------------------------


def rebuilds(settings: Settings) -> Check:
    """Check that no rebuild or verification was killed and left something behind.

    Raises:
        LogUnavailable: Redis is away.
    """
    redis, keys = connect_redis(settings), Keys(settings.namespace)
    try:
        sight = Instances(redis, keys).look()
        return left_behind(sight, running_rebuilds(redis, keys, _providers(sight)).keys())
    finally:
        redis.close()


def left_behind(sight: InstancesView, busy: Collection[str]) -> Check:
    """Check what commands left, but for the providers that a living one works on; pure."""
    held = sorted(name for name, hold in sight.pauses.items() if prepared_copy(hold))
    left = [name for name in held if _provider(name, sight) not in busy]
    if left:
        return _standing(left, sight)
    found, fix = next(_not_ended(sight, busy), ("none was cut short", ""))
    return Check(name="rebuilds", ok=True, found=found, fix=fix)


def _standing(left: Sequence[str], sight: InstancesView) -> Check:
    """Return the check of instances that a killed command holds; it fails if agents lack one."""
    serving = [n for n in left if live_name(_provider(n, sight), sight.live) == n]
    named = "; ".join(f"{name}: {sight.pauses[name].reason}" for name in left)
    return Check(
        name="rebuilds",
        ok=not serving,
        found=f"left standing still by a command that is gone: {named}",
        fix="the same command goes on"
        + (f"; or: memorybus provider resume {serving[0]} --execute" if serving else ""),
    )


def _not_ended(sight: InstancesView, busy: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield what killed commands did not end, and what to do about it."""
    for name in sorted(_providers(sight) - set(busy)):
        begun = unfinished(name, "rebuild", sight)
        if unended(name, sight):
            yield (
                f"{name} was swapped by a command that is gone before it had ended",
                ending(name, sight),
            )
        elif begun is not None:
            yield (
                f"{begun.name} follows the log unused: its rebuild was cut short, or differed",
                f"the same command goes on; or: memorybus rebuild --drop {name} --execute",
            )
    for one in sight.all.values():
        if one.purpose == "verify" and not one.dropped and one.provider not in busy:
            yield f"{one.name} was left by a verification that is gone", "memorybus up removes it"


def _providers(sight: InstancesView) -> set[str]:
    made = {one.provider for one in sight.all.values()}
    return made | set(sight.live) | {_provider(name, sight) for name in sight.pauses}


def _provider(name: str, sight: InstancesView) -> str:
    known = sight.all.get(name)
    return known.provider if known else name
