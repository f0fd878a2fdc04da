"""What events become messages; pure.

A message takes 25,000 characters (the server's default), a request 100 messages.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from memorybus.events import Delegated, TurnCompleted

from memorybus_providers.base import HookContext
from memorybus_providers.remote.texts import sendable, split_text

LONGEST: Final = 25_000
"""Characters of a message at most."""

BATCH: Final = 100
"""Messages of a request at most."""


class Said(msgspec.Struct, frozen=True):
    """One message.

    Attributes:
        by_person: whether the person says it, or the agent.
        content: the text; not blank.
        metadata: ``event_id``, by which it is found again, and where it was said.
        reasoned: whether Honcho shall derive something of it.
    """

    by_person: bool
    content: str
    metadata: dict[str, Any]
    reasoned: bool = True


def of_turn(event: TurnCompleted, ctx: HookContext) -> list[Said]:
    """Return a turn's messages; what the host made up for the person is not among them."""
    person = () if event.synthetic else tuple(_parts(event.user))
    texts = [(True, part) for part in person]
    texts += [(False, part) for part in _parts(event.assistant)]
    return _numbered(texts, ctx)


def of_delegation(event: Delegated, ctx: HookContext) -> list[Said]:
    """Return what a sub-agent did, as the agent tells it."""
    told = "\n".join(filter(None, (f"Delegated: {event.task}", event.result)))
    blank = not (event.task.strip() or event.result.strip())
    return [] if blank else _numbered([(False, part) for part in _parts(told)], ctx)


def batches(messages: Sequence[Said]) -> list[Sequence[Said]]:
    """Return the messages as requests take them."""
    return [messages[at : at + BATCH] for at in range(0, len(messages), BATCH)]


def _parts(text: str) -> Iterator[str]:
    return split_text(sendable(text), LONGEST)


def _numbered(texts: Sequence[tuple[bool, str]], ctx: HookContext) -> list[Said]:
    told = {"event_id": ctx.event_id, "session": sendable(ctx.session.id), "parts": len(texts)}
    return [
        Said(by_person, text, told | {"part": number})
        for number, (by_person, text) in enumerate(texts)
    ]
