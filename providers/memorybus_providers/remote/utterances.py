"""What was said in an event, by whom, as services take it; pure."""

from typing import NamedTuple

from memorybus.events import Delegated, TurnCompleted

from memorybus_providers.remote.texts import sendable


class RemoteUtterance(NamedTuple):
    """What one side said.

    Attributes:
        by_person: whether the person said it, or the agent.
        who: the speaker's name.
        text: the words; not blank.
    """

    by_person: bool
    who: str
    text: str


def from_turn(
    event: TurnCompleted, person: str = "User", agent: str = "Assistant"
) -> list[RemoteUtterance]:
    """Return who said what in a turn; a prompt that the host made up is left out.

    Args:
        event: the turn.
        person: stands for the person if the event has no name of theirs.
        agent: stands for the agent if the event has no name of its.
    """
    both = (
        RemoteUtterance(True, event.user_name or person, "" if event.synthetic else event.user),
        RemoteUtterance(False, event.assistant_name or agent, event.assistant),
    )
    sent = (RemoteUtterance(one.by_person, sendable(one.who), sendable(one.text)) for one in both)
    return [one for one in sent if one.text.strip()]


def from_delegation(event: Delegated) -> list[RemoteUtterance]:
    """Return what a sub-agent was asked (``Task``) and what it answered (``Result``)."""
    both = (
        RemoteUtterance(False, "Task", sendable(event.task)),
        RemoteUtterance(False, "Result", sendable(event.result)),
    )
    return [one for one in both if one.text.strip()]


def join_lines(utterances: list[RemoteUtterance]) -> str:
    """Return utterances as a text: a line for each, which begins with the speaker's name."""
    return "\n".join(f"{one.who}: {one.text}" for one in utterances)
