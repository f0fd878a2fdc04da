"""MentisDB: the thoughts of a chain, as ``POST /v1/thoughts/traverse`` returns them.

Read in mentisdb 0.9.7 (``WHITEPAPER.md``, section 2.1, and ``src/server.rs``): ``{"thoughts":
[{"id", "index", "timestamp", "agent_id", "agent_name", "agent_owner", "thought_type", "role",
"content", "scope", "relations": [{"kind", "target_id"}], …}], "has_more", "next_cursor"}``.
"""

from collections.abc import Mapping, Sequence

import msgspec

from memorybus.operations.ingest.foreign.model import (
    ForeignError,
    Found,
    Kept,
    Parsed,
    Record,
    parsed,
    text_of,
    time_of,
)
from memorybus.operations.ingest.foreign.reading import records

LISTS = ("thoughts",)
_REPLACING = frozenset(("supersedes", "corrects", "invalidates"))


def parse(data: bytes, name: str) -> Parsed:
    """Return the thoughts of an export.

    One that supersedes, corrects or invalidates another of this export takes its place. Thoughts
    whose scope is the agent's are its own notes; all others belong to a person.

    Raises:
        ForeignError: the file cannot be read.
    """
    given = list(records(data, name, LISTS))
    found = parsed(given, _thought)
    replaced = {
        one.value["id"]: _replaced(one.value.get("relations")) for one in given if _known(one)
    }
    texts = {kept.id: kept.text for kept in found.kept}
    found.kept = [_with_replaced(kept, replaced[kept.id], texts) for kept in found.kept]
    return found


def _known(record: Record) -> bool:
    return isinstance(record.value.get("id"), str)


def _thought(record: Record) -> Found:
    scope = text_of(record, "scope", default="")
    relations = record.value.get("relations")
    if not isinstance(relations, list | None):
        raise ForeignError(f"'relations' must be a list, not {type(relations).__name__}")
    return Kept(
        id=text_of(record, "id"),
        text=text_of(record, "content"),
        at=time_of(record, "timestamp"),
        user=text_of(record, "agent_owner", default=""),
        agent=text_of(record, "agent_id", default=""),
        store="memory" if scope.lower() == "agent" else "user",
        kind=text_of(record, "thought_type", default=""),
    )


def _replaced(relations: object) -> Sequence[str]:
    """Return the ids of the thoughts that one takes the place of."""
    given = relations if isinstance(relations, list) else []
    return [
        str(one.get("target_id"))
        for one in given
        if isinstance(one, dict) and str(one.get("kind")).lower() in _REPLACING
    ]


def _with_replaced(kept: Kept, targets: Sequence[str], texts: Mapping[str, str]) -> Kept:
    old = next((texts[target] for target in targets if target in texts), "")
    return msgspec.structs.replace(kept, replaces=old)
