"""``memorybus demo``: the whole system on a real Redis in a few seconds, leaving nothing behind."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings, load
from memorybus.embedded.server import EmbeddedRedis
from memorybus.errors import MemoryBusError
from memorybus.events import Message
from memorybus.health.monitor import read_status
from memorybus.log.stream import EventLog
from memorybus.operations.demo import script
from memorybus.operations.demo.script import (
    Act,
    Branch,
    Compress,
    Delegate,
    End,
    Remember,
    Return,
    Say,
    Step,
)
from memorybus.processes import child, commands, signals
from memorybus.redis.connect import connect_redis

PROVIDERS = ("builtin", "holographic")
APPLY_TIMEOUT = 20.0
WARM_TIMEOUT = 10.0
LOOK_EVERY = 0.005
PREFETCHES = 20


class DemoFailed(MemoryBusError):
    """The demo did not see what it waited for."""


class Shown(msgspec.Struct, frozen=True):
    """One step of the play has been published, in `seconds`."""

    session: str
    step: Step
    seconds: float


class Applied(msgspec.Struct, frozen=True):
    """How many of the published events each provider has applied so far."""

    published: int
    by_provider: dict[str, int]


class Timings(msgspec.Struct, frozen=True):
    """What was measured, in seconds (medians)."""

    publish: float
    applied: float
    warm: float
    prefetch: float


class Result(msgspec.Struct, frozen=True):
    """What the demo did; the first four fields are ``--json``."""

    published: int
    applied: dict[str, int]
    recalled: str
    seconds: float
    timings: Timings


Watch = Callable[[Shown | Applied], None]


def run(watch: Watch, pause: float = 0.0, clock: Clock = SYSTEM) -> Result:
    """Play the demo and clean up after it, also when it fails or is interrupted.

    Args:
        watch: is told each step and the providers' progress.
        pause: seconds between steps, so that people can follow.
        clock: time, injected.

    Raises:
        MemoryBusError: something did not work; says what.
    """
    begun = clock.monotonic()
    with _system() as settings, MemoryBus.connect(settings) as bus:
        play = _Play(bus, settings, watch, pause, clock)
        applied_after = play.acts()
        recalled, warm, prefetch = play.question()
        end = play.settled()
        return Result(
            published=end.published,
            applied=end.by_provider,
            recalled=recalled,
            seconds=round(clock.monotonic() - begun, 3),
            timings=Timings(statistics.median(play.publish_seconds), applied_after, warm, prefetch),
        )


@contextmanager
def _system() -> Iterator[Settings]:
    """Yield the settings of a fresh system: temporary directory, Redis, one worker."""
    with TemporaryDirectory(prefix="memorybus-") as place:
        directory = Path(place)
        settings = load(environ={}, directory=directory, data_dir=directory, providers=PROVIDERS)
        with (
            _redis(settings),
            child.running(
                commands.worker_command(PROVIDERS, jobs=1, with_parent=True),
                settings,
                directory=directory,
            ) as worker,
        ):
            if worker.report() is None:
                raise DemoFailed(
                    f"the worker ended (exit code {worker.stop()}) before it was ready; its "
                    f"reason stands above. Try `memorybus doctor`"
                )
            yield settings


@contextmanager
def _redis(settings: Settings) -> Iterator[None]:
    server = EmbeddedRedis(settings)
    try:
        with signals.deferred(server.give_up):
            server.start()
        yield
    finally:
        with signals.deferred():
            server.stop()


class _Play:
    """The agent of the demo: plays the acts, then asks the question."""

    def __init__(
        self, bus: MemoryBus, settings: Settings, watch: Watch, pause: float, clock: Clock
    ) -> None:
        self._bus = bus
        self._settings = settings
        self._log = EventLog(connect_redis(settings), settings)
        self._watch = watch
        self._pause = pause
        self._clock = clock
        self.publish_seconds: list[float] = []

    # -- the acts -------------------------------------------------------------------------------

    def acts(self) -> float:
        """Play everything; return the seconds from the last event until all were applied."""
        for number, act in enumerate(script.ACTS, 1):
            self._act(number, act)
        begun = self._clock.monotonic()
        self.settled()
        return self._clock.monotonic() - begun

    def _act(self, number: int, act: Act) -> None:
        session = self._bus.session(
            f"demo-{number}",
            agent=script.AGENT,
            user=script.USER,
            platform="demo",
            title=act.title,
        )
        begun = self._clock.monotonic()
        for step, after in played(act.steps, session):
            seconds = self._clock.monotonic() - begun
            if isinstance(step, Say | Remember):
                self.publish_seconds.append(seconds)
            self._watch(Shown(after.id, step, seconds))
            if self._pause:
                self._watch(self.progress())
                self._clock.sleep(self._pause)
            begun = self._clock.monotonic()

    def progress(self) -> Applied:
        """Return how far each provider has come."""
        providers = read_status(self._settings).providers
        published = sum(head.n for head in self._log.heads())
        return Applied(published, {one.name: one.applied for one in providers})

    def settled(self) -> Applied:
        """Wait until every event published so far is applied by both providers.

        Raises:
            DemoFailed: it takes too long.
        """
        if not self._bus.flush("logged", timeout=APPLY_TIMEOUT):
            raise DemoFailed(f"Redis did not take the events in time: {self._bus.problem}")
        deadline = self._clock.monotonic() + APPLY_TIMEOUT
        while self._clock.monotonic() < deadline:
            now = self.progress()
            self._watch(now)
            if all(now.by_provider.get(name, 0) >= now.published for name in PROVIDERS):
                return now
            self._clock.sleep(LOOK_EVERY)
        now = self.progress()
        raise DemoFailed(
            f"after {APPLY_TIMEOUT:g} s only {now.by_provider} of {now.published} events are "
            f"applied; try `memorybus doctor`"
        )

    # -- the question ---------------------------------------------------------------------------

    def question(self) -> tuple[str, float, float]:
        """Ask in a new session; return the block, the seconds until warm and of one prefetch."""
        session = self._bus.session(
            "demo-question", agent=script.AGENT, user=script.USER, platform="demo"
        )
        begun = self._clock.monotonic()
        session.queue_prefetch(script.QUESTION)
        block = self._wait_warm(session)
        warm = self._clock.monotonic() - begun
        return block, warm, statistics.median(self._timed(session) for _ in range(PREFETCHES))

    def _wait_warm(self, session: Session) -> str:
        deadline = self._clock.monotonic() + WARM_TIMEOUT
        while self._clock.monotonic() < deadline:
            block = session.prefetch(script.QUESTION)
            if block and all(name in block for name in PROVIDERS):
                return block
            self._clock.sleep(LOOK_EVERY)
        raise DemoFailed(
            f"nothing was recalled from {' and '.join(PROVIDERS)} within {WARM_TIMEOUT:g} s; try "
            f"`memorybus doctor`"
        )

    def _timed(self, session: Session) -> float:
        begun = self._clock.monotonic()
        session.prefetch(script.QUESTION)
        return self._clock.monotonic() - begun


def messages(steps: Sequence[Step]) -> list[Message]:
    """Return what was said in `steps`, as chat messages."""
    return [
        {"role": role, "content": text}
        for step in steps
        if isinstance(step, Say)
        for role, text in (("user", step.user), ("assistant", step.assistant))
    ]


def played(steps: Sequence[Step], session: Session) -> Iterator[tuple[Step, Session]]:
    """Publish steps one by one; yield each with the session that the next one belongs to."""
    home = session
    for index, step in enumerate(steps):
        after = _perform(step, session, home, messages(steps[:index]))
        if isinstance(step, Branch):
            home = session
        session = after
        yield step, session


def _perform(step: Step, session: Session, home: Session, said: Sequence[Message]) -> Session:
    """Publish one step and return the session that the next one belongs to.

    Args:
        step: what happens.
        session: where.
        home: where a `Return` leads.
        said: what a `Compress` takes out of the context window.
    """
    match step:
        case Say(user=user, assistant=assistant):
            session.turn_completed(
                user,
                assistant,
                user_name=script.PERSON,
                assistant_name=script.ASSISTANT,
            )
        case Remember(action=action, content=content, old_text=old_text, store=store):
            session.memory_written(action, content, store=store, old_text=old_text)
        case Branch(title=title):
            return session.branch(f"{session.id}-branch", title=title)
        case Return():
            return session.switched_to(home.id, reason="resume")
        case Compress(count=count):
            session.compressing(said, compression_count=count)
            return session.compressed()
        case Delegate(task=task, result=result):
            session.delegated(task, result)
        case End(reason=reason):
            session.ended(reason)
    return session
