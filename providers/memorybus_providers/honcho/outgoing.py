"""Makes messages for Honcho from events; pure.

A message may have 25,000 characters (the server's default), and a request 100 messages.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from memorybus.events import Delegated, TurnCompleted

from memorybus_providers.base import HookContext
from memorybus_providers.remote.texts import sendable, split_text

MAX_MESSAGE_CHARS: Final = 25_000
"""The most characters of a message."""

MAX_MESSAGES: Final = 100
"""The most messages of a request."""


class OutgoingMessage(msgspec.Struct, frozen=True):
    """One message that is sent to Honcho.

    Attributes:
        by_person: whether the person said it; if not, the agent did.
        content: the text; not blank.
        metadata: ``event_id``, by which it is found again, and where it was said.
        reasoned: whether Honcho should reason about it.
    """

    by_person: bool
    content: str
    metadata: dict[str, Any]
    reasoned: bool = True


def messages_of_turn(event: TurnCompleted, ctx: HookContext) -> list[OutgoingMessage]:
    """Return a turn's messages, without a prompt that the host wrote and not the person."""
    person = () if event.synthetic else tuple(_parts(event.user))
    texts = [(True, part) for part in person]
    texts += [(False, part) for part in _parts(event.assistant)]
    return _number_messages(texts, ctx)


def messages_of_delegation(event: Delegated, ctx: HookContext) -> list[OutgoingMessage]:
    """Return what a sub-agent did, as messages of the agent."""
    text = "\n".join(filter(None, (f"Delegated: {event.task}", event.result)))
    blank = not (event.task.strip() or event.result.strip())
    return [] if blank else _number_messages([(False, part) for part in _parts(text)], ctx)


def split_into_batches(messages: Sequence[OutgoingMessage]) -> list[Sequence[OutgoingMessage]]:
    """Return messages in groups that each fit into one request."""
    return [messages[at : at + MAX_MESSAGES] for at in range(0, len(messages), MAX_MESSAGES)]


def _parts(text: str) -> Iterator[str]:
    return split_text(sendable(text), MAX_MESSAGE_CHARS)


def _number_messages(texts: Sequence[tuple[bool, str]], ctx: HookContext) -> list[OutgoingMessage]:
    metadata = {"event_id": ctx.event_id, "session": sendable(ctx.session.id), "parts": len(texts)}
    return [
        OutgoingMessage(by_person, text, metadata | {"part": number})
        for number, (by_person, text) in enumerate(texts)
    ]
