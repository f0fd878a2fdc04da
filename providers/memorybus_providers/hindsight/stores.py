"""Applies writes to the agent's two stores; in Hindsight each entry is a document."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memorybus.events import MemoryWritten

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.hindsight.documents import (
    StoredDocument,
    document_of_write,
    store_tag,
    tags_of,
)
from memorybus_providers.remote.replacement import old_text, replaced_entries

if TYPE_CHECKING:
    from memorybus_providers.hindsight.calls import Calls

_MAX_SEARCH_CHARS = 200
"""The most characters of an old text that are searched for: they are part of the request's URL."""


def apply_write(calls: "Calls", bank: str, event: MemoryWritten, ctx: HookContext) -> None:
    """Apply a write: store the new entry, then delete the one that contains ``old_text``.

    In this order, a crash between the two steps never loses both entries.
    """
    document = None if event.action == "remove" else document_of_write(event, ctx)
    if document:
        calls.retain(bank, [document])
    wanted = old_text(event)
    if wanted:
        others = (
            one for one in _entries(calls, bank, event, ctx, wanted) if one.id != ctx.event_id
        )
        for one in replaced_entries(event, others, lambda kept: kept.text):
            calls.delete_document(bank, one.id)


def _entries(
    calls: "Calls", bank: str, event: MemoryWritten, ctx: HookContext, wanted: str
) -> Iterator[StoredDocument]:
    """Yield the entries of a store that contain a text, and perhaps others."""
    tags = (*tags_of(RecallScope.own(ctx.scope)), store_tag(event.store))
    for name in list(calls.document_names(bank, tags, wanted[:_MAX_SEARCH_CHARS])):
        if found := calls.get_document(bank, name):
            yield found
