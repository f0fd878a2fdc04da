"""``memorybus demo``: an agent talks, two providers remember it, and a question is asked.

It starts a Redis and a worker of its own, publishes the conversation of ``demo.json``, which was
written for it, and leaves nothing behind.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

import msgspec
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings, load
from memorybus.errors import MemoryBusError
from memorybus.events import Message
from memorybus.health.monitor import read_status
from memorybus.msgspec_types import prepared
from memorybus.processes.child import running_child
from memorybus.processes.commands import worker_command

from memorybus_console.operations.local_server import running_server

STEP_SECONDS = 20.0

_LOOK_EVERY = 0.005
_HELP = "try `memorybus doctor`"
_PROVIDERS: Final = ("builtin", "holographic")
_WARM_READS = 9
"""How often the warm answer is read, so that one interruption does not decide its time."""


class PlayStep(msgspec.Struct, frozen=True):
    """Something an agent publishes; the event determines which of the texts are set."""

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

    steps: tuple[PlayStep, ...]


class Play(msgspec.Struct, frozen=True):
    """The conversation: a lighthouse keeper restores an old lens with an agent's help."""

    agent: str
    user: str
    assistant: str
    question: str
    acts: tuple[PlayAct, ...]


PLAY = msgspec.json.decode(
    resources.files(__package__).joinpath("demo.json").read_bytes(), type=prepared(Play)
)


class DemoFailed(MemoryBusError):
    """The demo did not see what it waited for."""


class DemoResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the demo did.

    Attributes:
        caught_up: seconds from the last event until a provider had applied all, by provider.
    """

    published: int
    applied: dict[str, int]
    caught_up: dict[str, float]
    recalled: str  # the memory block that answers the question
    publish: float  # seconds that one step took (median)
    answer: float  # seconds for the question; it also starts the processes that answer
    again: float  # seconds for the same question, now warm (median)
    seconds: float = 0.0  # how long the whole demo took


def run_demo(show: Callable[[str, PlayStep], None], clock: Clock = SYSTEM) -> DemoResult:
    """Play the demo and clean up after it, also when it fails or is interrupted.

    Raises:
        MemoryBusError: something did not work; the message describes it.
    """
    begun = clock.monotonic()
    with _running_system() as settings, MemoryBus.connect(settings) as bus:
        took = list[float]()
        for number, act in enumerate(PLAY.acts, 1):
            last = clock.monotonic()
            for step, session in play_steps(act.steps, _open_session(bus, f"demo-{number}")):
                took.append(clock.monotonic() - last)
                show(session.id, step)
                last = clock.monotonic()
        result = _ask(bus, statistics.median(took), clock)
    return msgspec.structs.replace(result, seconds=round(clock.monotonic() - begun, 3))


@contextmanager
def _running_system() -> Iterator[Settings]:
    """Yield the settings of a fresh directory, in which a Redis and a worker run."""
    with TemporaryDirectory(prefix="memorybus-") as place:
        where = Path(place)
        settings = load(
            environ={}, directory=where, data_dir=where, providers=_PROVIDERS, log_level="warning"
        )
        command = worker_command(settings.providers, jobs=1, with_parent=True)
        with running_server(settings), running_child(command, settings, directory=where) as worker:
            if worker.report() is None:
                raise DemoFailed(
                    f"the worker ended (exit code {worker.stop()}) before it was ready; its "
                    f"reason is above. {_HELP.capitalize()}"
                )
            yield settings


def play_steps(steps: Sequence[PlayStep], session: Session) -> Iterator[tuple[PlayStep, Session]]:
    """Publish steps one by one; yield each with the session that the next one belongs to."""
    trunk, messages = session, list[Message]()
    for step in steps:
        if step.event == "branch":
            trunk, session = session, session.branch(f"{session.id}-branch", title=step.title)
        elif step.event == "switch":
            session = session.switched_to(trunk.id, reason="resume")
        elif step.event == "compress":
            session.compressing(messages, compression_count=1)
            session = session.compressed()
        else:
            messages += _publish_step(step, session)
        yield step, session


def _publish_step(step: PlayStep, session: Session) -> list[Message]:
    """Publish a step that stays in its session; return the messages of a turn."""
    match step.event:
        case "turn":
            user, assistant = step.user, step.assistant
            session.turn_completed(
                user, assistant, user_name=PLAY.user, assistant_name=PLAY.assistant
            )
            return [
                {"role": "user", "content": user},
                {"role": "assistant", "content": assistant},
            ]
        case "memory":
            old = step.old_text
            session.memory_written(step.action, step.content, store=step.store, old_text=old)
        case "delegate":
            session.delegated(step.task, step.result)
        case "end":
            session.ended(step.reason)
    return []


def _open_session(bus: MemoryBus, name: str) -> Session:
    return bus.session(name, agent=PLAY.agent, user=PLAY.user, platform="demo")


def _ask(bus: MemoryBus, publish: float, clock: Clock) -> DemoResult:
    """Wait until all is applied, and ask the question of the play twice."""
    session = _open_session(bus, "demo-question")
    applied, caught_up = _await_applied(bus, clock)
    answer, block = _measure(clock, lambda: session.prefetch(PLAY.question, wait=STEP_SECONDS))
    if not all(f"From {name}:" in block for name in _PROVIDERS):
        raise DemoFailed(f"the question has no answer after {answer:.0f} s; {_HELP}")
    reads = [_measure(clock, lambda: session.prefetch(PLAY.question)) for _ in range(_WARM_READS)]
    return DemoResult(
        published=max(applied.values()),
        applied=applied,
        caught_up=caught_up,
        recalled=block,
        publish=publish,
        answer=answer,
        again=statistics.median(seconds for seconds, _ in reads),
    )


def _measure(clock: Clock, do: Callable[[], str]) -> tuple[float, str]:
    begun = clock.monotonic()
    result = do()
    return clock.monotonic() - begun, result


def _await_applied(bus: MemoryBus, clock: Clock) -> tuple[dict[str, int], dict[str, float]]:
    """Wait until all is applied; return the events and the seconds that took, by provider."""
    begun = clock.monotonic()
    if not bus.flush("logged", timeout=STEP_SECONDS):
        raise DemoFailed(f"Redis did not take the events in time: {bus.problem}")
    ready: dict[str, float] = {}
    while clock.monotonic() < begun + STEP_SECONDS:
        providers = read_status(bus.settings).providers
        for provider in providers:
            if not provider.backlog:
                ready.setdefault(provider.name, clock.monotonic() - begun)
        if len(ready) == len(_PROVIDERS):
            return {provider.name: provider.applied for provider in providers}, ready
        clock.sleep(_LOOK_EVERY)
    raise DemoFailed(f"the events are not all applied after {STEP_SECONDS:g} s; {_HELP}")
