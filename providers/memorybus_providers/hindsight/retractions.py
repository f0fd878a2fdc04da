"""Deletes what was retracted: an event's document, or its turn in a session's document."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.hindsight import sessions
from memorybus_providers.hindsight.documents import STORES, Document, StoredDocument, tags_of
from memorybus_providers.remote.texts import sendable

if TYPE_CHECKING:
    from memorybus_providers.hindsight.calls import Calls

_EVENT = re.compile(r"[0-9a-f]{32}")


def retract_events(calls: "Calls", bank: str, event_ids: Sequence[str], ctx: HookContext) -> None:
    """Delete what came from events, if it belongs to the scope and lineage of `ctx`."""
    for event_id in filter(_EVENT.fullmatch, event_ids):
        for document in _documents_of_event(calls, bank, event_id, ctx):
            if document.id == event_id and document.kind not in STORES:
                calls.delete_document(bank, document.id)
            elif document.kind == sessions.KIND:
                _remove_turn(calls, bank, document, event_id)


def _documents_of_event(
    calls: "Calls", bank: str, event_id: str, ctx: HookContext
) -> Iterator[StoredDocument]:
    """Yield the documents of this lineage that have an event's id in their name or text."""
    for name in list(calls.document_names(bank, tags_of(RecallScope.own(ctx.scope)), event_id)):
        document = calls.get_document(bank, name)
        if document and document.metadata.get("root") == sendable(ctx.session.root):
            yield document


def _remove_turn(calls: "Calls", bank: str, document: StoredDocument, event_id: str) -> None:
    text = sessions.remove_turn(document.text, event_id)
    if not text:
        calls.delete_document(bank, document.id)
    elif text != document.text:
        metadata, tags = document.metadata, document.tags
        shorter = Document(document.id, text, sessions.CONTEXT, metadata, tags, document.at)
        calls.retain(bank, [shorter])
