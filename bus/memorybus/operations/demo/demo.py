"""``memorybus demo``: an agent talks, two providers remember it, and a question is asked."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeVar

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
from memorybus.processes import signals
from memorybus.processes.child import running
from memorybus.processes.commands import worker_command
from memorybus.redis.connect import connect_redis

PROVIDERS = ("builtin", "holographic")
PATIENCE = 20.0
LOOK_EVERY = 0.005
PREFETCHES = 20

_T = TypeVar("_T")


class DemoFailed(MemoryBusError):
    """The demo did not see what it waited for."""


class PlayStep(msgspec.Struct, frozen=True):
    """Something an agent publishes; which of the texts there are depends on the event."""

    event: Literal["turn", "memory", "branch", "switch", "compress", "delegate", "end"]
    user: str = ""
    assistant: str = ""
    action: Literal["add", "replace", "remove"] = "add"
    store: Literal["memory", "user"] = "user"
    content: str = ""
    old_text: str = ""
    title: str = ""
    task: str = ""
    result: str = ""
    reason: str = ""


class PlayAct(msgspec.Struct, frozen=True):
    """One session of the play."""

    title: str
    steps: tuple[PlayStep, ...]


class Play(msgspec.Struct, frozen=True):
    """The conversation: a lighthouse keeper restores an old lens with an agent's help."""

    agent: str
    user: str
    assistant: str
    question: str
    acts: tuple[PlayAct, ...]


PLAY = msgspec.json.decode(
    resources.files(__package__).joinpath("play.json").read_bytes(), type=Play
)


class DemoTimings(msgspec.Struct, frozen=True):
    """What was measured, in seconds (medians)."""

    publish: float
    applied: float
    warm: float
    prefetch: float


class DemoResult(msgspec.Struct, frozen=True):
    """What the demo did; all but the timings is ``--json``."""

    published: int
    applied: dict[str, int]
    recalled: str
    seconds: float
    timings: DemoTimings


ShowStep = Callable[[str, PlayStep], None]
"""Is told each step that was published, and in which session."""

ShowProgress = Callable[[int, Mapping[str, int]], None]
"""Is told how many events are published, and how many each provider has applied."""


def run(
    show: ShowStep, progress: ShowProgress, pause: float = 0.0, clock: Clock = SYSTEM
) -> DemoResult:
    """Play the demo and clean up after it, also when it fails or is interrupted.

    Args:
        show, progress: see there.
        pause: seconds between steps, so that people can follow.
        clock: time, injected.

    Raises:
        MemoryBusError: something did not work; says what.
    """
    begun = clock.monotonic()
    with _system() as settings, MemoryBus.connect(settings) as bus:
        agent = _Agent(bus, settings, progress, clock)
        publish = statistics.median(agent.plays(show, pause))
        played = clock.monotonic()
        agent.await_applied()
        applied = clock.monotonic() - played
        recalled, warm, prefetch = agent.asks()
        published, by_provider = agent.await_applied()
        seconds = round(clock.monotonic() - begun, 3)
        timings = DemoTimings(publish, applied, warm, prefetch)
        return DemoResult(published, by_provider, recalled, seconds, timings)


@contextmanager
def _system() -> Iterator[Settings]:
    """Yield the settings of a fresh system: temporary directory, Redis, one worker."""
    with TemporaryDirectory(prefix="memorybus-") as place:
        directory = Path(place)
        settings = load(environ={}, directory=directory, data_dir=directory, providers=PROVIDERS)
        server = EmbeddedRedis(settings)
        command = worker_command(PROVIDERS, jobs=1, with_parent=True)
        try:
            with signals.deferred(server.give_up):
                server.start()
            with running(command, settings, directory=directory) as worker:
                if worker.report() is None:
                    raise DemoFailed(
                        f"the worker ended (exit code {worker.stop()}) before it was ready; its "
                        "reason stands above. Try `memorybus doctor`"
                    )
                yield settings
        finally:
            with signals.deferred():
                server.stop()


class _Agent:
    """The agent of the demo."""

    def __init__(
        self, bus: MemoryBus, settings: Settings, progress: ShowProgress, clock: Clock
    ) -> None:
        self._bus = bus
        self._settings = settings
        self._log = EventLog(connect_redis(settings), settings)
        self._progress = progress
        self._clock = clock

    def plays(self, show: ShowStep, pause: float) -> list[float]:
        """Publish everything; return the seconds that each turn and each memory write took."""
        seconds = []
        for number, act in enumerate(PLAY.acts, 1):
            session = self._session(f"demo-{number}", act.title)
            session.queue_prefetch(act.title)  # an agent asks ahead, which starts the recalls
            begun = self._clock.monotonic()
            for step, after in played(act.steps, session):
                if step.event in ("turn", "memory"):
                    seconds.append(self._clock.monotonic() - begun)
                show(after.id, step)
                if pause:
                    self._progress(*self._applied())
                    self._clock.sleep(pause)
                begun = self._clock.monotonic()
        return seconds

    def _session(self, name: str, title: str = "") -> Session:
        return self._bus.session(
            name, agent=PLAY.agent, user=PLAY.user, platform="demo", title=title
        )

    def _applied(self) -> tuple[int, dict[str, int]]:
        published = sum(head.n for head in self._log.heads())
        providers = read_status(self._settings).providers
        return published, {one.name: one.applied for one in providers}

    def await_applied(self) -> tuple[int, dict[str, int]]:
        """Wait until both providers have applied every event; return how many that are."""
        if not self._bus.flush("logged", timeout=PATIENCE):
            raise DemoFailed(f"Redis did not take the events in time: {self._bus.problem}")

        def done() -> tuple[int, dict[str, int]] | None:
            published, applied = self._applied()
            self._progress(published, applied)
            whole = all(applied.get(name, 0) >= published for name in PROVIDERS)
            return (published, applied) if whole else None

        return self._until(done, "the events are not all applied")

    def asks(self) -> tuple[str, float, float]:
        """Ask in a new session; return the block, the seconds until warm and of one prefetch."""
        session = self._session("demo-question")
        begun = self._clock.monotonic()
        session.queue_prefetch(PLAY.question)

        def warm() -> str | None:
            block = session.prefetch(PLAY.question)
            return block if all(name in block for name in PROVIDERS) else None

        block = self._until(warm, "nothing is recalled")
        seconds = self._clock.monotonic() - begun
        return block, seconds, statistics.median(self._timed(session) for _ in range(PREFETCHES))

    def _timed(self, session: Session) -> float:
        begun = self._clock.monotonic()
        session.prefetch(PLAY.question)
        return self._clock.monotonic() - begun

    def _until(self, found: Callable[[], _T | None], problem: str) -> _T:
        deadline = self._clock.monotonic() + PATIENCE
        while self._clock.monotonic() < deadline:
            if (value := found()) is not None:
                return value
            self._clock.sleep(LOOK_EVERY)
        raise DemoFailed(f"{problem} after {PATIENCE:g} s; try `memorybus doctor`")


def played(steps: Sequence[PlayStep], session: Session) -> Iterator[tuple[PlayStep, Session]]:
    """Publish steps one by one; yield each with the session that the next one belongs to."""
    trunk = session
    said: list[Message] = []
    for step in steps:
        if step.event == "branch":
            trunk = session
        session = _published(step, session, trunk, said)
        if step.event == "turn":
            said += [
                {"role": "user", "content": step.user},
                {"role": "assistant", "content": step.assistant},
            ]
        yield step, session


def _published(
    step: PlayStep, session: Session, trunk: Session, said: Sequence[Message]
) -> Session:
    """Publish one step in a session; return the session that the next one belongs to."""
    match step.event:
        case "turn":
            session.turn_completed(
                step.user, step.assistant, user_name=PLAY.user, assistant_name=PLAY.assistant
            )
        case "memory":
            old = step.old_text
            session.memory_written(step.action, step.content, store=step.store, old_text=old)
        case "branch":
            return session.branch(f"{session.id}-branch", title=step.title)
        case "switch":
            return session.switched_to(trunk.id, reason="resume")
        case "compress":
            session.compressing(said, compression_count=1)
            return session.compressed()
        case "delegate":
            session.delegated(step.task, step.result)
        case "end":
            session.ended(step.reason)
    return session
