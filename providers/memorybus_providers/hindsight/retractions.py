"""What was taken back, deleted: an event's document, or its turn in one of a session."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.hindsight import sessions
from memorybus_providers.hindsight.documents import STORES, Document, Kept, tags_of
from memorybus_providers.remote.texts import sendable

if TYPE_CHECKING:
    from memorybus_providers.hindsight.calls import Calls

_EVENT = re.compile(r"[0-9a-f]{32}")


def take_back(calls: "Calls", bank: str, event_ids: Sequence[str], ctx: HookContext) -> None:
    """Delete what came from events, as far as it is of the scope and lineage of `ctx`."""
    for event_id in filter(_EVENT.fullmatch, event_ids):
        for kept in _of_event(calls, bank, event_id, ctx):
            if kept.id == event_id and kept.kind not in STORES:
                calls.delete(bank, kept.id)
            elif kept.kind == sessions.KIND:
                _shorten(calls, bank, kept, event_id)


def _of_event(calls: "Calls", bank: str, event_id: str, ctx: HookContext) -> Iterator[Kept]:
    """Yield the documents of this lineage in whose name or text an event stands."""
    for name in list(calls.names(bank, tags_of(RecallScope.own(ctx.scope)), event_id)):
        kept = calls.document(bank, name)
        if kept and kept.metadata.get("root") == sendable(ctx.session.root):
            yield kept


def _shorten(calls: "Calls", bank: str, kept: Kept, event_id: str) -> None:
    left = sessions.without(kept.text, event_id)
    if not left:
        calls.delete(bank, kept.id)
    elif left != kept.text:
        again = Document(kept.id, left, sessions.CONTEXT, kept.metadata, kept.tags, kept.at)
        calls.retain(bank, [again])
