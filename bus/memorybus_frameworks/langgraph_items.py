"""The items of LangGraph's store, as writes to a person's memory make them; pure."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec
from memorybus.events import Envelope, MemoryWritten
from memorybus.msgspec_types import prepared

MARK = "langgraph"
"""The key of a write's provenance under which the stored item is."""

ItemPlace: TypeAlias = tuple[tuple[str, ...], str]
"""A namespace and a key in it."""


class StoredItem(msgspec.Struct, frozen=True):
    """An item as a write carries it; `value` is None where it was deleted."""

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any] | None


class Entry(msgspec.Struct, frozen=True):
    """What stands at a place: the last write, its value and text, and times in milliseconds."""

    event_id: str
    value: dict[str, Any] | None
    text: str
    created: int
    updated: int

    def fields(self, place: ItemPlace) -> dict[str, Any]:
        """Return the fields of LangGraph's `Item`."""
        return {
            "namespace": place[0],
            "key": place[1],
            "value": self.value,
            "created_at": datetime.fromtimestamp(self.created / 1000, UTC),
            "updated_at": datetime.fromtimestamp(self.updated / 1000, UTC),
        }


StandingItems = dict[ItemPlace, Entry]


def fold(events: Iterable[Envelope]) -> StandingItems:
    """Return the newest entry of each place; a write by others removes what it names."""
    entries: StandingItems = {}
    for envelope in events:
        event, at = envelope.event, envelope.at
        if not isinstance(event, MemoryWritten):
            continue
        if mark := event.provenance.get(MARK):
            stored = msgspec.json.decode(mark, type=prepared(StoredItem))
            place = (stored.namespace, stored.key)
            old = entries.get(place)
            created = old.created if old and old.value is not None else at
            text = event.content if stored.value is not None else ""
            entries[place] = Entry(envelope.id, stored.value, text, created, at)
        elif event.action != "add" and event.old_text.strip():
            for place, entry in entries.items():
                if entry.value is not None and event.old_text in entry.text:
                    entries[place] = Entry(envelope.id, None, "", entry.created, at)
    return entries


def ranked(
    entries: Mapping[ItemPlace, Entry], scores: Mapping[str, float] | None
) -> list[tuple[ItemPlace, float | None]]:
    """Return the places that have a score, best first; without scores all, the newest first.

    Args:
        entries: what stands.
        scores: what was recalled, best first, by its event and by its text.
    """
    if scores is None:
        newest = sorted(entries, key=lambda place: (-entries[place].updated, place))
        return [(place, None) for place in newest]
    order = {name: rank for rank, name in enumerate(scores)}
    names = {place: e.event_id if e.event_id in order else e.text for place, e in entries.items()}
    hits = sorted((order[name], place) for place, name in names.items() if name in order)
    return [(place, scores[names[place]]) for _, place in hits]
