"""Reads what was said in an event, and by whom, for services; pure."""

from typing import NamedTuple

from memorybus.events import Delegated, TurnCompleted

from memorybus_providers.remote.texts import sendable


class RemoteUtterance(NamedTuple):
    """The words of one side.

    Attributes:
        by_person: whether the person said it; if not, the agent did.
        who: the speaker's name.
        text: the words; not blank.
    """

    by_person: bool
    who: str
    text: str


def from_turn(
    event: TurnCompleted, person: str = "User", agent: str = "Assistant"
) -> list[RemoteUtterance]:
    """Return what was said in a turn, without a prompt that the host wrote and not the person.

    Args:
        event: the turn.
        person: the person's name if the event has none.
        agent: the agent's name if the event has none.
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
    """Return utterances as a text, each on a line that begins with the speaker's name."""
    return "\n".join(f"{one.who}: {one.text}" for one in utterances)
