"""Deletes what was retracted: the documents of events."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.hindsight.documents import STORES, StoredDocument, tags_of
from memorybus_providers.remote.texts import sendable

if TYPE_CHECKING:
    from memorybus_providers.hindsight.calls import Calls

_EVENT = re.compile(r"[0-9a-f]{32}")


def retract_events(calls: "Calls", bank: str, event_ids: Sequence[str], ctx: HookContext) -> None:
    """Delete what came from events, if it belongs to the scope and lineage of `ctx`."""
    for event_id in filter(_EVENT.fullmatch, event_ids):
        document = calls.get_document(bank, event_id)
        if document and _may_retract(document, ctx):
            calls.delete_document(bank, event_id)


def _may_retract(document: StoredDocument, ctx: HookContext) -> bool:
    """Return whether a document is of this scope and lineage, and no entry of a store."""
    return (
        document.kind not in STORES
        and set(tags_of(RecallScope.own(ctx.scope))) <= set(document.tags)
        and document.metadata.get("root") == sendable(ctx.session.root)
    )
