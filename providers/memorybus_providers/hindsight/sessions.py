"""Keeps several turns of a session in one document, in which each is found by its event; pure.

The text is a JSON list of messages, as Hindsight's own plugins send conversations. Each message
names its event, so that a turn is found if it comes again or is retracted.
"""

from typing import Final

import msgspec
from memorybus.events import TurnCompleted
from memorybus.msgspec_types import prepared

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.hindsight.documents import Document, metadata_of, tags_of
from memorybus_providers.remote import names, utterances

KIND: Final = "session"
CONTEXT: Final = "a conversation"


class DocumentMessage(msgspec.Struct, frozen=True):
    """What one speaker said in a turn."""

    event: str
    name: str
    content: str
    at: int = 0


def document_id(event: TurnCompleted, ctx: HookContext, turns: int) -> str:
    """Return the name of the document of a turn, if each contains `turns` turns of a session."""
    part = max(event.ordinal, 0) // turns
    return f"session__{names.name_of(ctx.session.id)}__{ctx.session.epoch}__{part}"


def messages_of(content: str) -> tuple[DocumentMessage, ...]:
    """Return the messages of a document's text; none if the text is not ours."""
    try:
        return msgspec.json.decode(content, type=prepared(tuple[DocumentMessage, ...]))
    except msgspec.MsgspecError:
        return ()


def add_turn(before: str, event: TurnCompleted, ctx: HookContext) -> str:
    """Return a document's text with a turn added; the same text if the turn is in it already."""
    messages = messages_of(before)
    if any(one.event == ctx.event_id for one in messages):
        return before
    new = (
        DocumentMessage(ctx.event_id, one.who, one.text, ctx.at)
        for one in utterances.from_turn(event)
    )
    return _text((*messages, *new))


def remove_turn(before: str, event_id: str) -> str:
    """Return a document's text without a turn; "" if nothing is left."""
    left = tuple(one for one in messages_of(before) if one.event != event_id)
    return _text(left) if left else ""


def session_document(name: str, content: str, ctx: HookContext) -> Document:
    """Return the document of some turns of a session."""
    tags = tags_of(RecallScope.own(ctx.scope))
    return Document(name, content, CONTEXT, metadata_of(KIND, ctx), tags, ctx.at)


def _text(messages: tuple[DocumentMessage, ...]) -> str:
    return msgspec.json.encode(messages).decode()
