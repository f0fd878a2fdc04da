"""``memorybus demo``: an agent talks, providers remember it, and a question is asked."""

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings, load
from memorybus.errors import MemoryBusError
from memorybus.health.monitor import read_status
from memorybus.processes import signals
from memorybus.processes.child import running_child
from memorybus.processes.commands import erase_owner, worker_command

from memorybus_console.operations.demo.audience import Audience
from memorybus_console.operations.demo.cast import PACKAGED, Cast
from memorybus_console.operations.demo.play import PLAY, PlayAct, play_steps
from memorybus_console.operations.local_server import running_server

STEP_SECONDS = 20.0

LOOK_EVERY = 0.005

_WARM_READS = 9
"""How often the warm answer is read, so that one interruption does not decide its time."""

_HELP = "try `memorybus doctor`"


class DemoFailed(MemoryBusError):
    """The demo did not see what it waited for."""


class DemoResult(msgspec.Struct, frozen=True, kw_only=True):
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
        answer: seconds for the question; it also starts the processes that answer.
        again: seconds for the same question, now warm (median).
    """

    published: int
    applied: dict[str, int]
    caught_up: dict[str, float]
    recalled: str
    silent: tuple[str, ...]
    publish: float
    answer: float
    again: float
    seconds: float = 0.0
    left: dict[str, tuple[str, ...]] = {}

    @property
    def catch_up(self) -> float:
        """Seconds from the last event until all providers had applied all."""
        return max(self.caught_up.values())


def run_demo(audience: Audience, cast: Cast = PACKAGED, clock: Clock = SYSTEM) -> DemoResult:
    """Play the demo and clean up after it, also when it fails or is interrupted.

    Args:
        audience: receives what happens.
        cast: who takes part.
        clock: time, injected.

    Raises:
        MemoryBusError: something did not work; the message says what.
    """
    begun = clock.monotonic()
    with _started_system(cast) as settings:
        try:
            with _running_worker(settings), MemoryBus.connect(settings) as bus:
                result = _play(bus, cast, audience, clock)
        finally:
            left = _erase_outside(settings, cast)
    seconds = round(clock.monotonic() - begun, 3)
    return msgspec.structs.replace(result, seconds=seconds, left=left)


def _play(bus: MemoryBus, cast: Cast, audience: Audience, clock: Clock) -> DemoResult:
    publish = list[float]()
    for number, act in enumerate(PLAY.acts, 1):
        publish += _play_act(act, _open_session(bus, f"demo-{number}", cast), audience, clock)
    asking = _open_session(bus, "demo-question", cast)
    published, applied, caught_up = _await_applied(bus, audience, clock)
    answer, block = _measure(clock, lambda: asking.prefetch(PLAY.question, wait=STEP_SECONDS))
    silent = tuple(name for name in bus.settings.providers if f"From {name}:" not in block)
    if set(silent) - set(cast.outside):
        raise DemoFailed(f"the question has no answer after {answer:.0f} s; {_HELP}")
    reads = [_measure(clock, lambda: asking.prefetch(PLAY.question)) for _ in range(_WARM_READS)]
    return DemoResult(
        published=published,
        applied=applied,
        caught_up=caught_up,
        recalled=block,
        silent=silent,
        publish=statistics.median(publish),
        answer=answer,
        again=statistics.median(seconds for seconds, _ in reads),
    )


def _play_act(act: PlayAct, session: Session, audience: Audience, clock: Clock) -> Iterator[float]:
    """Publish an act; yield how long each turn and each memory write took."""
    last = clock.monotonic()
    for step, now in play_steps(act.steps, session):
        if step.event in ("turn", "memory"):
            yield clock.monotonic() - last
        audience.show(now.id, step)
        clock.sleep(audience.pause)
        last = clock.monotonic()


def _measure(clock: Clock, do: Callable[[], str]) -> tuple[float, str]:
    begun = clock.monotonic()
    result = do()
    return clock.monotonic() - begun, result


def _open_session(bus: MemoryBus, name: str, cast: Cast) -> Session:
    return bus.session(name, agent=PLAY.agent, user=cast.user, platform="demo")


def _await_applied(
    bus: MemoryBus, audience: Audience, clock: Clock
) -> tuple[int, dict[str, int], dict[str, float]]:
    """Wait until all providers have applied every event.

    Returns:
        How many events were published, how many each provider applied, and the seconds until each
        provider had applied all.
    """
    begun = clock.monotonic()
    if not bus.flush("logged", timeout=STEP_SECONDS):
        raise DemoFailed(f"Redis did not take the events in time: {bus.problem}")
    ready: dict[str, float] = {}
    while clock.monotonic() < begun + STEP_SECONDS:
        lanes = read_status(bus.settings).providers
        applied = {one.name: one.applied for one in lanes}
        published = max(one.applied + one.backlog for one in lanes)
        audience.progress(published, applied)
        for one in lanes:
            if not one.backlog:
                ready.setdefault(one.name, clock.monotonic() - begun)
        if len(lanes) == len(bus.settings.providers) and not any(one.backlog for one in lanes):
            return published, applied, ready
        clock.sleep(LOOK_EVERY)
    raise DemoFailed(f"the events are not all applied after {STEP_SECONDS:g} s; {_HELP}")


@contextmanager
def _started_system(cast: Cast) -> Iterator[Settings]:
    """Yield the settings of a fresh system with a temporary directory and a Redis of its own."""
    with TemporaryDirectory(prefix="memorybus-") as place:
        directory = Path(place)
        settings = load(
            environ={},
            directory=directory,
            data_dir=directory,
            providers=cast.settings.providers,
            provider=cast.settings.provider,
            secrets_file=cast.settings.secrets_file,
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


def _erase_outside(settings: Settings, cast: Cast) -> dict[str, tuple[str, ...]]:
    """Erase the demo's memories in backends that outlive its directory; return what is left."""
    if not cast.outside:
        return {}
    with signals.deferred():
        left = erase_owner(settings, cast.outside, PLAY.agent, cast.user)
    made = {
        name: (f"{place}, made for the demo: empty, and yours to drop",)
        for name, place in cast.made.items()
    }
    return {name: (*made.get(name, ()), *left.get(name, ())) for name in [*made, *left]}
