"""Writes to the two stores, as conclusions of the session of notes.

Honcho gives conclusions no metadata and keeps the same one twice. So a write first brings the
conclusions to what they should be, by their text: doing that again changes nothing. Then a message
says that it is done, by which the event is known; it holds no text that was written.
"""

from collections.abc import Sequence

import msgspec
from memorybus.events import MemoryWritten, StoreName

from memorybus_providers.base import HookContext
from memorybus_providers.honcho import outgoing, places
from memorybus_providers.honcho.tenant import Tenant
from memorybus_providers.remote.texts import sendable, split_text

_PAGE = 100


class Note(msgspec.Struct, frozen=True):
    """A conclusion that a write has left."""

    id: str
    content: str


class Changes(msgspec.Struct, frozen=True):
    """What a write does: texts that are made, and ids of conclusions that go."""

    made: list[str]
    gone: list[str]


def changes(event: MemoryWritten, held: Sequence[Note]) -> Changes:
    """Return what a write still has to do.

    As in the agent's own files, a text is there once; what names no entry, or several different
    ones, removes none.
    """
    wanted = list(split_text(sendable(event.content), outgoing.LONGEST))
    texts = {one.content for one in held}
    old = sendable(event.old_text).strip()
    meant = [one for one in held if old and old in one.content and one.content not in wanted]
    clear = len({one.content for one in meant}) == 1
    return Changes(
        [] if event.action == "remove" else [one for one in wanted if one not in texts],
        [one.id for one in meant] if clear and event.action != "add" else [],
    )


def write(tenant: Tenant, event: MemoryWritten, ctx: HookContext) -> Changes:
    """Apply a write, and say that it is done; return what was changed."""
    tenant.place(places.NOTES)
    found = changes(event, notes_of(tenant, event.store))
    view = tenant.held(event.store)
    if found.made:
        view.create([{"content": text, "session_id": places.NOTES} for text in found.made])
    for one in found.gone:
        view.delete(one)
    done(tenant, f"{event.action} {event.store}", ctx)
    return found


def notes_of(tenant: Tenant, store: StoreName) -> list[Note]:
    """Return what writes have left in a store."""
    listed = tenant.held(store).list(session=places.NOTES, size=_PAGE)
    return [Note(str(one.id), str(one.content)) for one in listed]


def done(tenant: Tenant, what: str, ctx: HookContext) -> None:
    """Say that an event is applied: a message about which Honcho shall not reason."""
    told = {"event_id": ctx.event_id, "parts": 1, "part": 0}
    said = outgoing.Said(by_person=False, content=what, metadata=told, reasoned=False)
    tenant.say(places.NOTES, [said], ctx.at)
