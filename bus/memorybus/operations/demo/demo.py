"""``memorybus demo``: an agent talks, providers remember it, and a question is asked."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

import msgspec

from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings, load
from memorybus.errors import ConfigError, MemoryBusError
from memorybus.health.monitor import read_status
from memorybus.ids import NewId, new_mark
from memorybus.operations.demo.play import PLAY, PlayStep, play_steps
from memorybus.operations.local_server import running_server
from memorybus.processes import signals
from memorybus.processes.child import running_child
from memorybus.processes.commands import describe_instance, erase_owner, worker_command
from memorybus.processes.reports import InstanceDescription

PROVIDERS = ("builtin", "holographic")
PATIENCE = 20.0
"""Seconds that each step may take."""

LOOK_EVERY = 0.005

_WARM_READS = 9
"""How often the warm answer is read, so that one interruption does not decide its time."""

_HELP = "try `memorybus doctor`"

_T = TypeVar("_T")


class DemoFailed(MemoryBusError):
    """The demo did not see what it waited for."""


class DemoResult(msgspec.Struct, frozen=True):
    """What the demo did.

    Attributes:
        published: how many events were published.
        applied: how many events each provider applied.
        caught_up: seconds from the last event until a provider had applied all, by provider.
        recalled: the memory block that answers the question.
        silent: providers without a line in this block.
        left: memories of the demo that could not be erased in outside backends, by provider.
        seconds: how long the whole demo took.
        publish: seconds that a turn or memory write took (median).
        catch_up: seconds from the last event until all providers had applied all.
        answer: seconds for the question; it also starts the processes that answer.
        again: seconds for the same question, now warm (median).
    """

    published: int
    applied: dict[str, int]
    caught_up: dict[str, float]
    recalled: str
    silent: tuple[str, ...]
    seconds: float
    publish: float
    catch_up: float
    answer: float
    again: float
    left: dict[str, tuple[str, ...]] = {}


ShowStep = Callable[[str, PlayStep], None]
"""Receives the session and the step, for each step that was published."""

ShowProgress = Callable[[int, Mapping[str, int]], None]
"""Receives how many events are published, and how many each provider has applied."""


class DemoProviders(msgspec.Struct, frozen=True):
    """The providers that take part in the demo.

    Attributes:
        names: the instances.
        tables: their kinds and options.
        secrets_file: the secrets file of the user's settings.
        user: the invented person whose memories the demo makes.
        made: what the demo creates on a server for itself alone, by provider.
    """

    names: tuple[str, ...] = PROVIDERS
    tables: dict[str, dict[str, Any]] = {}
    secrets_file: str = ""
    user: str = PLAY.user
    made: dict[str, str] = {}

    @property
    def outside(self) -> tuple[str, ...]:
        """The providers that may keep something outside of the demo's directory."""
        kinds = {name: self.tables.get(name, {}).get("kind", name) for name in self.names}
        return tuple(name for name, kind in kinds.items() if kind not in PROVIDERS)


PACKAGED: Final = DemoProviders()
"""The two providers of the package that need no service."""


def choose_providers(
    settings: Settings, names: Sequence[str], make_mark: NewId = new_mark
) -> DemoProviders:
    """Return the named providers: instances of the user's settings, or else kinds.

    The demo's person then gets a unique name, since the server may hold real people. Where a server
    also keeps checkpoints, the demo gets a place of its own there: those checkpoints belong to
    another log.

    Args:
        settings: the user's settings.
        names: the instances; none for the two of the package.
        make_mark: makes the unique part of names.

    Raises:
        MissingProvider, ConfigError: a provider cannot be made here, or not separately from the
            user's own.
    """
    if not names:
        return PACKAGED
    mark = make_mark()
    tables = {name: settings.provider.get(name, {}) for name in names}
    who = DemoProviders(tuple(names), tables, settings.secrets_file, f"{PLAY.user}-{mark}")
    places = {
        name: _own_place_options(describe_instance(settings, name), name, mark)
        for name in who.outside
    }
    apart = {name: {**tables[name], **place} for name, place in places.items()}
    made = {
        name: ", ".join(f"{option} {value!r}" for option, value in place.items())
        for name, place in places.items()
        if place
    }
    return msgspec.structs.replace(who, tables=tables | apart, made=made)


def _own_place_options(what: InstanceDescription, name: str, mark: str) -> dict[str, str]:
    """Return the options that separate a demo's checkpoints from those of the user's own log.

    Raises:
        ConfigError: no option says where checkpoints are.
    """
    if what.delivery != "transactional" or what.by_home:
        return {}
    if not what.place:
        raise ConfigError(
            f"{name} keeps checkpoints on its server, and no option says where: a demo would take "
            f"the place of your own log's"
        )
    return dict.fromkeys(what.place, f"mb_demo_{mark}")


def run_demo(
    show: ShowStep,
    progress: ShowProgress,
    pause: float = 0.0,
    clock: Clock = SYSTEM,
    providers: DemoProviders = PACKAGED,
) -> DemoResult:
    """Play the demo and clean up after it, also when it fails or is interrupted.

    Args:
        show, progress: receive what happens; see `ShowStep` and `ShowProgress`.
        pause: seconds between steps, so that people can follow.
        clock: time, injected.
        providers: the providers that take part.

    Raises:
        MemoryBusError: something did not work; the message says what.
    """
    begun = clock.monotonic()
    left: dict[str, tuple[str, ...]] = {}
    with _started_system(providers) as settings:
        try:
            with _running_worker(settings), MemoryBus.connect(settings) as bus:
                result = _play_acts(bus, providers, show, progress, pause, clock)
        finally:
            left |= _erase_outside(settings, providers)
    seconds = round(clock.monotonic() - begun, 3)
    return msgspec.structs.replace(result, seconds=seconds, left=left)


def _play_acts(
    bus: MemoryBus,
    providers: DemoProviders,
    show: ShowStep,
    progress: ShowProgress,
    pause: float,
    clock: Clock,
) -> DemoResult:
    publish = []
    for number, act in enumerate(PLAY.acts, 1):
        begin, last = _open_session(bus, f"demo-{number}", providers), clock.monotonic()
        for step, session in play_steps(act.steps, begin):
            if step.event in ("turn", "memory"):
                publish.append(clock.monotonic() - last)
            show(session.id, step)
            clock.sleep(pause)
            last = clock.monotonic()
    wait = partial(_await_applied, bus, len(providers.names), progress, clock)
    catch_up, (_, _, caught_up) = _measure(clock, wait)
    asking = _open_session(bus, "demo-question", providers)
    answer, block = _measure(clock, lambda: asking.prefetch(PLAY.question, wait=PATIENCE))
    silent = tuple(name for name in providers.names if f"From {name}:" not in block)
    if set(silent) & {*providers.names} - {*providers.outside}:
        raise DemoFailed(f"the question has no answer after {answer:.0f} s; {_HELP}")
    reads = [_measure(clock, lambda: asking.prefetch(PLAY.question)) for _ in range(_WARM_READS)]
    again = statistics.median(seconds for seconds, _ in reads)
    published, applied, _ = wait()
    median = statistics.median(publish)
    return DemoResult(
        published, applied, caught_up, block, silent, 0, median, catch_up, answer, again
    )


def _measure(clock: Clock, do: Callable[[], _T]) -> tuple[float, _T]:
    begun = clock.monotonic()
    result = do()
    return clock.monotonic() - begun, result


def _open_session(bus: MemoryBus, name: str, providers: DemoProviders) -> Session:
    return bus.session(name, agent=PLAY.agent, user=providers.user, platform="demo")


def _await_applied(
    bus: MemoryBus, count: int, progress: ShowProgress, clock: Clock
) -> tuple[int, dict[str, int], dict[str, float]]:
    """Wait until all providers have applied every event.

    Returns:
        How many events were published, how many each provider applied, and the seconds until each
        provider had applied all.
    """
    begun = clock.monotonic()
    if not bus.flush("logged", timeout=PATIENCE):
        raise DemoFailed(f"Redis did not take the events in time: {bus.problem}")
    ready: dict[str, float] = {}
    while clock.monotonic() < begun + PATIENCE:
        providers = read_status(bus.settings).providers
        applied = {one.name: one.applied for one in providers}
        published = max(one.applied + one.backlog for one in providers)
        progress(published, applied)
        for one in providers:
            if not one.backlog:
                ready.setdefault(one.name, clock.monotonic() - begun)
        if len(providers) == count and not any(one.backlog for one in providers):
            return published, applied, ready
        clock.sleep(LOOK_EVERY)
    raise DemoFailed(f"the events are not all applied after {PATIENCE:g} s; {_HELP}")


@contextmanager
def _started_system(providers: DemoProviders) -> Iterator[Settings]:
    """Yield the settings of a fresh system with a temporary directory and a Redis of its own."""
    with TemporaryDirectory(prefix="memorybus-") as place:
        directory = Path(place)
        settings = load(
            environ={},
            directory=directory,
            data_dir=directory,
            providers=providers.names,
            provider=providers.tables,
            secrets_file=providers.secrets_file,
            log_level="warning",
        )
        with running_server(settings):
            yield settings


@contextmanager
def _running_worker(settings: Settings) -> Iterator[None]:
    """Run one worker while the block lasts."""
    command = worker_command(settings.providers, jobs=1, with_parent=True)
    with running_child(command, settings, directory=settings.data_dir) as worker:
        if worker.report() is None:
            raise DemoFailed(
                f"the worker ended (exit code {worker.stop()}) before it was ready; its "
                "reason stands above. Try `memorybus doctor`"
            )
        yield


def _erase_outside(settings: Settings, providers: DemoProviders) -> dict[str, tuple[str, ...]]:
    """Erase the demo's memories in backends that outlive its directory; return what is left."""
    if not providers.outside:
        return {}
    with signals.deferred():
        left = erase_owner(settings, providers.outside, PLAY.agent, providers.user)
    made = {
        name: (f"{place}, made for the demo: empty, and yours to drop",)
        for name, place in providers.made.items()
    }
    return {name: (*made.get(name, ()), *left.get(name, ())) for name in [*made, *left]}
