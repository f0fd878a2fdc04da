"""Applies writes to the two stores, as conclusions of the session of notes.

Conclusions of Honcho have no metadata, and it stores the same one twice. So a write compares texts
and makes or deletes only the conclusions that differ; a repeated write changes nothing. Then a
message records that the event is applied; it does not contain the text that was written.
"""

from collections.abc import Sequence

import msgspec
from memorybus.events import MemoryWritten, StoreName

from memorybus_providers.base import HookContext
from memorybus_providers.honcho import outgoing, places
from memorybus_providers.honcho.tenant import Tenant
from memorybus_providers.remote.texts import sendable, split_text

_PAGE = 100


class Conclusion(msgspec.Struct, frozen=True):
    """A conclusion that a write has made."""

    id: str
    content: str


class Changes(msgspec.Struct, frozen=True):
    """What a write changes: the texts of new conclusions, and the ids of those that are deleted."""

    created: list[str]
    deleted: list[str]


def plan_changes(event: MemoryWritten, stored: Sequence[Conclusion]) -> Changes:
    """Return what a write still has to change.

    As in the agent's own files, a text is stored once. If no entry contains the old text, or
    several different ones do, none is deleted.
    """
    wanted = list(split_text(sendable(event.content), outgoing.MAX_MESSAGE_CHARS))
    texts = {one.content for one in stored}
    old = sendable(event.old_text).strip()
    found = [one for one in stored if old and old in one.content and one.content not in wanted]
    is_clear = len({one.content for one in found}) == 1
    return Changes(
        [] if event.action == "remove" else [one for one in wanted if one not in texts],
        [one.id for one in found] if is_clear and event.action != "add" else [],
    )


def apply_write(tenant: Tenant, event: MemoryWritten, ctx: HookContext) -> Changes:
    """Apply a write and record that it is applied; return what was changed."""
    tenant.place(places.NOTES)
    changes = plan_changes(event, list_notes(tenant, event.store))
    view = tenant.conclusions_of(event.store)
    if changes.created:
        view.create([{"content": text, "session_id": places.NOTES} for text in changes.created])
    for one in changes.deleted:
        view.delete(one)
    mark_applied(tenant, f"{event.action} {event.store}", ctx)
    return changes


def list_notes(tenant: Tenant, store: StoreName) -> list[Conclusion]:
    """Return the conclusions that writes have made in a store."""
    listed = tenant.conclusions_of(store).list(session=places.NOTES, size=_PAGE)
    return [Conclusion(str(one.id), str(one.content)) for one in listed]


def mark_applied(tenant: Tenant, what: str, ctx: HookContext) -> None:
    """Record that an event is applied, by a message about which Honcho does not reason."""
    metadata = {"event_id": ctx.event_id, "parts": 1, "part": 0}
    message = outgoing.OutgoingMessage(
        by_person=False, content=what, metadata=metadata, reasoned=False
    )
    tenant.store_messages(places.NOTES, [message], ctx.at)
