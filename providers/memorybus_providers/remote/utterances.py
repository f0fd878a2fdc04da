"""What of an event anybody said, as services take it; pure."""

from typing import NamedTuple

from memorybus.events import Delegated, TurnCompleted

from memorybus_providers.remote.texts import sendable


class Said(NamedTuple):
    """Words of one side.

    Attributes:
        by_person: whether the person said them, or the agent.
        who: the name of who said them.
        text: the words; not blank.
    """

    by_person: bool
    who: str
    text: str


def in_turn(event: TurnCompleted, person: str = "User", agent: str = "Assistant") -> list[Said]:
    """Return who said what in a turn; what the host wrote itself was said by nobody.

    Args:
        event: the turn.
        person: the name of a person without one.
        agent: the name of an agent without one.
    """
    both = (
        Said(True, event.user_name or person, "" if event.synthetic else event.user),
        Said(False, event.assistant_name or agent, event.assistant),
    )
    sent = (Said(one.by_person, sendable(one.who), sendable(one.text)) for one in both)
    return [one for one in sent if one.text.strip()]


def in_delegation(event: Delegated) -> list[Said]:
    """Return what a sub-agent was asked (``Task``) and what it answered (``Result``)."""
    both = (
        Said(False, "Task", sendable(event.task)),
        Said(False, "Result", sendable(event.result)),
    )
    return [one for one in both if one.text.strip()]


def lines(said: list[Said]) -> str:
    """Return words as a text, a line for each side that begins with its name."""
    return "\n".join(f"{one.who}: {one.text}" for one in said)
