"""The agent's two stores in Hindsight, a document for each entry."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memorybus.events import MemoryWritten

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.hindsight.documents import Kept, of_write, store_tag, tags_of
from memorybus_providers.remote.texts import sendable

if TYPE_CHECKING:
    from memorybus_providers.hindsight.calls import Calls

_ASKED = 200
"""Characters of an old text that Hindsight is asked for: it stands in the request's address."""


def write(calls: "Calls", bank: str, event: MemoryWritten, ctx: HookContext) -> None:
    """Apply a write. The new entry comes first, so that a crash between never loses both.

    What ``old_text`` names is taken away if it is one text, be it there several times; several
    different ones are all left alone, as the agent's own stores do.
    """
    document = None if event.action == "remove" else of_write(event, ctx)
    if document:
        calls.retain(bank, [document])
    if event.action == "add" or not event.old_text.strip():
        return
    old = [one for one in _entries(calls, bank, event, ctx) if one.id != ctx.event_id]
    if len({one.text for one in old}) == 1:
        for one in old:
            calls.delete(bank, one.id)


def _entries(calls: "Calls", bank: str, event: MemoryWritten, ctx: HookContext) -> Iterator[Kept]:
    """Yield the entries of a store in which the old text stands."""
    wanted = sendable(event.old_text)
    tags = (*tags_of(RecallScope.own(ctx.scope)), store_tag(event.store))
    for name in list(calls.names(bank, tags, wanted[:_ASKED])):
        found = calls.document(bank, name)
        if found and wanted in found.text:
            yield found
