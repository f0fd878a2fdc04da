"""The conversation that the demo plays, and how a session publishes it."""

from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Literal

import msgspec
from memorybus.agent.session import Session
from memorybus.events import Message
from memorybus.msgspec_types import prepared


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
    resources.files(__package__).joinpath("play.json").read_bytes(), type=prepared(Play)
)


def play_steps(steps: Sequence[PlayStep], session: Session) -> Iterator[tuple[PlayStep, Session]]:
    """Publish steps one by one; yield each with the session that the next one belongs to."""
    trunk = session
    messages: list[Message] = []
    for step in steps:
        if step.event == "branch":
            trunk = session
        session = _publish_step(step, session, trunk, messages)
        if step.event == "turn":
            messages += [
                {"role": "user", "content": step.user},
                {"role": "assistant", "content": step.assistant},
            ]
        yield step, session


def _publish_step(
    step: PlayStep, session: Session, trunk: Session, messages: Sequence[Message]
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
            session.compressing(messages, compression_count=1)
            return session.compressed()
        case "delegate":
            session.delegated(step.task, step.result)
        case "end":
            session.ended(step.reason)
    return session
