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
from memorybus.processes import signals
from memorybus.processes.child import running
from memorybus.processes.commands import worker_command

PROVIDERS = ("builtin", "holographic")
PATIENCE = 20.0
"""Seconds that anything may take."""

LOOK_EVERY = 0.005
_HELP = "try `memorybus doctor`"

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


class DemoResult(msgspec.Struct, frozen=True):
    """What the demo did.

    Attributes:
        published: events.
        applied: events by provider.
        recalled: the block that answers the question.
        seconds: what the whole demo took.
        publish: seconds that a turn or memory write took (median).
        catch_up: seconds from the last event until both providers have applied all.
        answer: seconds for the question; the first one starts the processes that answer.
        again: seconds for the same question, now warm (median).
    """

    published: int
    applied: dict[str, int]
    recalled: str
    seconds: float
    publish: float
    catch_up: float
    answer: float
    again: float


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
        publish = []
        for number, act in enumerate(PLAY.acts, 1):
            begin, last = _session(bus, f"demo-{number}"), clock.monotonic()
            for step, session in played(act.steps, begin):
                if step.event in ("turn", "memory"):
                    publish.append(clock.monotonic() - last)
                show(session.id, step)
                clock.sleep(pause)
                last = clock.monotonic()
        catch_up, _ = _timed(clock, lambda: _await_applied(bus, progress, clock))
        asking = _session(bus, "demo-question")
        answer, block = _timed(clock, lambda: asking.prefetch(PLAY.question, wait=PATIENCE))
        if not all(name in block for name in PROVIDERS):
            raise DemoFailed(f"the question has no answer after {answer:.0f} s; {_HELP}")
        again, _ = _timed(clock, lambda: asking.prefetch(PLAY.question))
        published, applied = _await_applied(bus, progress, clock)
        seconds = round(clock.monotonic() - begun, 3)
        return DemoResult(
            published, applied, block, seconds, statistics.median(publish), catch_up, answer, again
        )


def _timed(clock: Clock, do: Callable[[], _T]) -> tuple[float, _T]:
    begun = clock.monotonic()
    result = do()
    return clock.monotonic() - begun, result


def _session(bus: MemoryBus, name: str) -> Session:
    return bus.session(name, agent=PLAY.agent, user=PLAY.user, platform="demo")


def _await_applied(
    bus: MemoryBus, progress: ShowProgress, clock: Clock
) -> tuple[int, dict[str, int]]:
    """Wait until both providers have applied every event; return how many that are."""
    if not bus.flush("logged", timeout=PATIENCE):
        raise DemoFailed(f"Redis did not take the events in time: {bus.problem}")
    deadline = clock.monotonic() + PATIENCE
    while clock.monotonic() < deadline:
        providers = read_status(bus.settings).providers
        applied = {one.name: one.applied for one in providers}
        published = max(one.applied + one.backlog for one in providers)
        progress(published, applied)
        if len(providers) == len(PROVIDERS) and not any(one.backlog for one in providers):
            return published, applied
        clock.sleep(LOOK_EVERY)
    raise DemoFailed(f"the events are not all applied after {PATIENCE:g} s; {_HELP}")


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
