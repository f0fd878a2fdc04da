"""Checks for the doctor what no status shows: homes, notes, killed rebuilds, backends, canaries."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import LogError, LogUnavailable, MemoryBusError
from memorybus.events import CanarySent, Scope, SessionRef
from memorybus.health.finding import Check
from memorybus.health.findings import START_REMEDY
from memorybus.health.monitor import Monitor, open_monitor
from memorybus.jobs.inspect import CheckHealth, InspectionFailed, InstanceInspector
from memorybus.log.stream import Head
from memorybus.redis.keys import partition_of, session_key
from memorybus.registry.canary import note_arrival
from memorybus.registry.instances import (
    InstancesView,
    Live,
    describe_ignored,
    ignored_entries,
    live_name,
    prepared_copy,
)

from memorybus_console.operations.copies.generations import (
    command_to_finish_swap,
    unfinished_copy,
    unfinished_swap,
)
from memorybus_console.operations.journal import CANARY_PREFIX, CANARY_SCOPE
from memorybus_console.operations.providers.inventory import (
    ListedProvider,
    check_homes,
    list_instances,
)
from memorybus_console.operations.stores import Stores


def check_instances(settings: Settings, clock: Clock) -> Iterator[Check]:
    """Check the provider instances, beside what their figures show."""
    yield run_guarded("homes", START_REMEDY, lambda: check_homes(list_instances(settings)))
    yield run_guarded("notes", START_REMEDY, lambda: check_notes(list_instances(settings)))
    yield run_guarded("copies", START_REMEDY, lambda: check_copies(settings))
    yield run_guarded("rebuilds", START_REMEDY, lambda: check_rebuilds(settings))
    yield run_guarded("health", START_REMEDY, lambda: check_health(settings, clock))


def run_guarded(name: str, fix: str, check: Callable[[], Check]) -> Check:
    """Run a check; if it raises, return a failed one with this remedy, or that of Redis."""
    try:
        return check()
    except LogUnavailable as error:
        return Check(name=name, ok=False, found=error.problem, fix=error.remedy or fix)
    except (MemoryBusError, OSError) as error:
        return Check(name=name, ok=False, found=str(error), fix=fix)


def check_notes(providers: Sequence[ListedProvider]) -> Check:
    """Show the notes that instances give for people; this never fails."""
    text = "; ".join(f"{provider.name}: {provider.note}" for provider in providers if provider.note)
    return Check(name="notes", ok=True, found=text or "none")


def check_health(settings: Settings, clock: Clock) -> Check:
    """Ask the live instances for the health of their backends, where a worker can answer."""
    with Stores(settings) as stores:
        served, live = stores.roster.job_providers(), stores.instances.live()
        providers = stores.roster.providers()
    asked = [name for name, info in providers.items() if info.examines and name in served]
    ill = {name: why for name in asked if (why := _describe_illness(settings, clock, name, live))}
    if not ill:
        well = f"{', '.join(asked)}: healthy" if asked else "no provider has a health check"
        return Check(name="health", ok=True, found=well)
    found = "; ".join(f"{name}: {why}" for name, why in ill.items())
    fix = "see to what the provider names; memorybus provider test NAME tries each step"
    return Check(name="health", ok=False, found=found, fix=fix)


def _describe_illness(settings: Settings, clock: Clock, name: str, live: Mapping[str, Live]) -> str:
    """Return why an instance is not healthy; "" if it is."""
    try:
        return (
            InstanceInspector(settings, clock).ask(name, live_name(name, live), CheckHealth()).why
        )
    except InspectionFailed as error:
        return str(error)


# -- copies ---------------------------------------------------------------------------------------


def check_copies(settings: Settings) -> Check:
    """Check that memorybus itself wrote every entry of the copies' hash."""
    with Stores(settings) as stores:
        keys = stores.keys
        strange = ignored_entries(stores.instances.read_view(), settings.providers)
    if not strange:
        return Check(name="copies", ok=True, found="all records valid")
    return Check(
        name="copies",
        ok=False,
        found=f"{keys.instances}: {describe_ignored(strange)}",
        fix=f"no command of memorybus made them: see who can write to this Redis, then delete them "
        f"(redis-cli hdel {keys.instances} NAME)",
    )


# -- rebuilds -------------------------------------------------------------------------------------


def check_rebuilds(settings: Settings) -> Check:
    """Check that no killed rebuild or verification left something behind."""
    with Stores(settings) as stores:
        view = stores.instances.read_view()
        return check_left_behind(view, stores.working_commands(_all_providers(view)).keys())


def check_left_behind(view: InstancesView, busy: Collection[str]) -> Check:
    """Check what killed commands left at providers on which no live command works; pure."""
    paused = sorted(name for name, why in view.pauses.items() if prepared_copy(why))
    stopped = [name for name in paused if _provider_of(name, view) not in busy]
    if stopped:
        return _check_standing(stopped, view)
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
        found=f"stopped by a command that has ended: {named}",
        fix="the same command continues"
        + (f"; or: memorybus provider resume {serving[0]}" if serving else ""),
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
                f"the same command continues; or: memorybus rebuild --drop {name} --yes",
            )
    for instance in view.all.values():
        if instance.purpose == "verify" and not instance.dropped and instance.provider not in busy:
            yield (
                f"{instance.name} was left by a verification that is gone",
                "memorybus up removes it",
            )


def _all_providers(view: InstancesView) -> set[str]:
    made = {instance.provider for instance in view.all.values()}
    return made | set(view.live) | {_provider_of(name, view) for name in view.pauses}


def _provider_of(name: str, view: InstancesView) -> str:
    instance = view.all.get(name)
    return instance.provider if instance else name


PASSED_WITHIN = 10.0  # seconds in which every lane of the canary's partition has to pass it


def send_and_await(settings: Settings, clock: Clock, word: str) -> Check:
    """Publish a canary, wait until every provider's lane has passed it, and note when that was.

    Args:
        word: a part of its session's id, which determines its partition.

    Raises:
        MemoryBusError: nothing can be published, or Redis is away.
    """
    begun = clock.monotonic()
    with open_monitor(settings) as monitor:
        partition = _publish_canary(settings, word)
        if partition is None:
            return NOT_LOGGED
        waits = _await_lanes(monitor, monitor.log.heads()[partition], clock)
    if not waits:
        _note_passage(settings, clock)
    return check_passage(waits, clock.monotonic() - begun)


def check_passage(waits: Sequence[str], seconds: float) -> Check:
    """Return the check of a canary that the log has; `waits` are those who did not pass it."""
    if waits:
        found = f"not applied within {PASSED_WITHIN:g} s by: {', '.join(waits)}"
        fix = "see the backlog with `memorybus status`, and the worker's log"
        return Check(name="canary", ok=False, found=found, fix=fix)
    found = f"published, and reached every lane in {seconds * 1000:.0f} ms"
    return Check(name="canary", ok=True, found=found)


def _publish_canary(settings: Settings, word: str) -> int | None:
    """Publish the canary; return its partition, None if Redis did not take it in time."""
    scope = Scope(agent=CANARY_SCOPE, user=CANARY_SCOPE)
    name = CANARY_PREFIX + word
    key = session_key(scope, name)
    with MemoryBus.connect(settings) as bus:
        bus.publish(CanarySent(), key=key, scope=scope, session=SessionRef(id=name, root=name))
        logged = bus.flush("logged", timeout=LOG_TIMEOUT)
    return partition_of(key, settings.partitions) if logged else None


def _await_lanes(monitor: Monitor, place: Head, clock: Clock) -> list[str]:
    """Wait for the lanes of a partition; return the providers that did not pass it in time."""
    deadline = clock.monotonic() + PASSED_WITHIN
    while (waits := monitor.providers_before(place)) and clock.monotonic() < deadline:
        clock.sleep(LOOK_EVERY)
    return waits


def _note_passage(settings: Settings, clock: Clock) -> None:
    """Note when the canary arrived; the check passes even if the note cannot be written."""
    with Stores(settings) as stores, suppress(LogError):
        note_arrival(stores.redis, stores.keys, clock.now_ms())


RECALLED_WITHIN = 10.0
NOT_LOGGED = Check(
    name="canary",
    ok=False,
    found="published, but Redis did not take it in time: it waits in the spool",
    fix="run: memorybus status",
)
LOG_TIMEOUT = 3.0
RECALL_TIMEOUT = 3.0
LOOK_EVERY = 0.05


def send_and_recall(settings: Settings, clock: Clock, word: str) -> Check:
    """Write a unique word to the canaries' store, recall it, and remove it again.

    The word is removed even if this is interrupted; the removal then waits in the spool.

    Raises:
        MemoryBusError: nothing can be published, or no worker answers recalls.
    """
    begun = clock.monotonic()
    logged, line = False, ""
    with MemoryBus.connect(settings) as bus:
        session = bus.session(
            CANARY_PREFIX + word, agent=CANARY_SCOPE, user=CANARY_SCOPE, warm=False
        )
        session.memory_written("add", f"The canary of the doctor sings {word}.", store="user")
        try:
            logged = bus.flush("logged", timeout=LOG_TIMEOUT)
            line = _recalled_line(bus, word, clock) if logged else ""
        finally:
            _remove_word(session, word)
            bus.flush("logged", timeout=LOG_TIMEOUT if logged else 0)
    return check_recall(line, clock.monotonic() - begun) if logged else NOT_LOGGED


def check_recall(line: str, seconds: float) -> Check:
    """Return the check of a canary that the log has; `line` is what was recalled, or ""."""
    if line:
        found = f"published, applied and recalled in {seconds * 1000:.0f} ms: {line}"
        return Check(name="canary", ok=True, found=found)
    return Check(
        name="canary",
        ok=False,
        found=f"published and logged, not recalled within {RECALLED_WITHIN:g} s",
        fix="see the backlog with `memorybus status`, dead letters with `memorybus dlq ls`",
    )


def _recalled_line(bus: MemoryBus, word: str, clock: Clock) -> str:
    """Return the line that recalls the word; "" if none does in time."""
    deadline = clock.monotonic() + RECALLED_WITHIN
    while clock.monotonic() < deadline:
        answer = bus.recall(word, agent=CANARY_SCOPE, user=CANARY_SCOPE, timeout=RECALL_TIMEOUT)
        for line in answer.text.splitlines():
            if word in line:
                return line
        clock.sleep(LOOK_EVERY)
    return ""


def _remove_word(session: Session, word: str) -> None:
    session.memory_written("remove", store="user", old_text=word)
    session.ended("canary")
