"""Makes documents of Hindsight from events, with the tags and the bank of their owner; pure."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec
from memorybus.events import Delegated, MemoryWritten, StoreName, TurnCompleted
from memorybus.ids import derived_id

from memorybus_providers.base import HookContext, RecallScope, Recollection, StoredMemory
from memorybus_providers.remote import texts
from memorybus_providers.remote.texts import parse_milliseconds, sendable

if TYPE_CHECKING:
    from hindsight_client_api.models.recall_result import RecallResult


OUR_TAG = "memorybus"
"""The tag of all that the bus writes; documents of others in a bank are never recalled."""

STORES: Final = frozenset(get_args(StoreName))


class Document(msgspec.Struct, frozen=True):
    """A text with everything that Hindsight is told about it.

    Attributes:
        metadata: its kind, owner and origin; each memory derived from the text has it, too.
    """

    id: str  # its name within a bank; a document of the same name replaces it
    content: str  # the text
    context: str  # a few words that tell Hindsight's model what the text is
    metadata: dict[str, str]
    tags: tuple[str, ...]  # name its owner, and its store if it is an entry of one
    at: int  # when it was said, milliseconds


class StoredDocument(msgspec.Struct, frozen=True):
    """A document as Hindsight returns it."""

    id: str  # its name within the bank
    text: str  # the text as it was sent; "" if the server keeps no texts
    metadata: dict[str, str]  # its kind, owner and origin
    tags: tuple[str, ...]  # name its owner, and its store if it is an entry of one

    @property
    def kind(self) -> str:
        """Its kind: turn, session, delegation, note, or the store of an entry."""
        return self.metadata.get("kind", "")

    @property
    def at(self) -> int:
        """The time at which it was said, milliseconds; 0 if unknown."""
        return parse_milliseconds(self.metadata.get("at"))


def bank_of(prefix: str, agent: str, user: str, workspace: str) -> str:
    """Return the name of an owner's bank."""
    return f"{prefix}__{texts.name_of(agent, user, workspace)}"


def tags_of(scope: RecallScope) -> tuple[str, ...]:
    """Return the tags that all documents of a scope have, and no others."""
    parts = {"agent": scope.agent, "user": scope.user, "workspace": scope.workspace}
    given = (f"{part}:{texts.name_of(one)}" for part, one in parts.items() if one is not None)
    return (OUR_TAG, *given)


def store_tag(store: StoreName) -> str:
    """Return the tag of one of the agent's two stores."""
    return f"store:{store}"


def operation_id(bank: str, document: Document) -> str:
    """Return the id under which a retain is queued.

    The id is derived from the text, too, since Hindsight silently drops another text under a known
    id; and from the bank, since all banks of a server share one table of ids.
    """
    digest = derived_id("hindsight", bank, document.id, document.content)
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:]))


def document_of_turn(event: TurnCompleted, ctx: HookContext) -> Document | None:
    """Return the document of a turn; None if nothing was said."""
    text = texts.join_lines(texts.from_turn(event))
    return _document("turn", text, "a turn of a conversation", ctx) if text else None


def document_of_delegation(event: Delegated, ctx: HookContext) -> Document | None:
    """Return the document of what a sub-agent did; None if it has no text."""
    text = texts.join_lines(texts.from_delegation(event))
    return _document("delegation", text, "a delegated task", ctx) if text else None


def document_of_write(event: MemoryWritten, ctx: HookContext) -> Document | None:
    """Return the document of an entry that is written to a store; None if it is blank."""
    text = sendable(event.content)
    if not text.strip():
        return None
    about = "about the person" if event.store == "user" else "of the assistant"
    document = _document(event.store, text, f"a note {about}", ctx)
    return msgspec.structs.replace(document, tags=(*document.tags, store_tag(event.store)))


def document_of_note(text: str, context: str, ctx: HookContext) -> Document:
    """Return the document of a text that a model wants to retain."""
    return _document("note", sendable(text), sendable(context) or "a note", ctx)


def metadata_of(kind: str, ctx: HookContext) -> dict[str, str]:
    """Return the metadata that says what a document is and where it comes from."""
    scope, session = ctx.scope, ctx.session
    metadata = {
        "kind": kind,
        "event": ctx.event_id,
        "agent": scope.agent,
        "user": scope.user,
        "workspace": scope.workspace,
        "session": session.id,
        "root": session.root,
        "at": str(ctx.at),
    }
    return {name: sendable(value) for name, value in metadata.items()}


def _document(kind: str, content: str, context: str, ctx: HookContext) -> Document:
    tags = tags_of(RecallScope.own(ctx.scope))
    return Document(ctx.event_id, content, context, metadata_of(kind, ctx), tags, ctx.at)


def to_recollection(result: "RecallResult") -> Recollection:
    """Return a memory; one that Hindsight derived from several events names no event."""
    metadata = result.metadata or {}
    scores = result.scores
    return Recollection(
        text=result.text,
        session=metadata.get("session", ""),
        at=parse_milliseconds(metadata.get("at"))
        or _parse_time(result.occurred_start or result.mentioned_at),
        score=float(scores.final or 0.0) if scores else 0.0,
        source=result.type or "",
        event=metadata.get("event", ""),
    )


def to_tool_result(result: "RecallResult") -> dict[str, Any]:
    """Return a memory as a model sees it."""
    return {
        "text": result.text,
        "kind": result.type or "",
        "at": result.occurred_start or result.mentioned_at or "",
    }


def to_stored_memory(document: StoredDocument) -> StoredMemory:
    """Return what a document keeps."""
    metadata = document.metadata
    return StoredMemory(
        text=document.text,
        agent=metadata.get("agent", ""),
        user=metadata.get("user", ""),
        workspace=metadata.get("workspace", ""),
        kind=document.kind,
        session=metadata.get("session", ""),
        at=document.at,
        event=metadata.get("event", ""),
    )


def _parse_time(written: str | None) -> int:
    """Return a time as Hindsight writes it, in milliseconds; 0 if `written` is not a time."""
    try:
        return int(datetime.fromisoformat(written or "").timestamp() * 1_000)
    except ValueError:
        return 0
