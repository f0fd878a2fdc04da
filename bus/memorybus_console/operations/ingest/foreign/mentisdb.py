"""MentisDB: the thoughts of a chain, as ``POST /v1/thoughts/traverse`` returns them.

Read in mentisdb 0.9.7 (``WHITEPAPER.md``, section 2.1, and ``src/server.rs``): ``{"thoughts":
[{"id", "index", "timestamp", "agent_id", "agent_name", "agent_owner", "thought_type", "role",
"content", "scope", "relations": [{"kind", "target_id"}], …}], "has_more", "next_cursor"}``.
"""

from collections.abc import Mapping, Sequence

import msgspec

from memorybus_console.operations.ingest.foreign.records import (
    Export,
    ForeignError,
    ForeignMemory,
    ParsedExport,
    ParsedRecord,
    Record,
    begin_of,
    parse_records,
    text_of,
)
from memorybus_console.operations.ingest.reading.names import id_text
from memorybus_console.operations.ingest.report import LeftOut

LISTS = ("thoughts",)
_REPLACING_RELATIONS = frozenset(("supersedes", "corrects", "invalidates"))


def parse(export: Export) -> ParsedExport:
    """Return the thoughts of an export.

    A thought that supersedes, corrects or invalidates another one of this export replaces it.
    Thoughts with the scope of an agent are the agent's own notes; all others belong to a person.

    Raises:
        ForeignError: the file cannot be read.
    """
    left_out = LeftOut()
    records = list(export.records(LISTS, left_out))
    parsed = parse_records(records, _parse_thought, left_out)
    replaced = {
        id_text(record.value.get("id")): _replaced_ids(record.value.get("relations"))
        for record in records
    }
    given = (record.value.get("relations") for record in records)
    relations = sum(len(one) for one in given if isinstance(one, list))
    left_out.drop("relations", relations - sum(map(len, replaced.values())))
    texts = {kept.id: kept.text for kept in parsed.memories}
    parsed.memories = [_with_replaced(kept, replaced[kept.id], texts) for kept in parsed.memories]
    return parsed


def _parse_thought(record: Record) -> ParsedRecord:
    scope = text_of(record, "scope", default="")
    relations = record.value.get("relations")
    if not isinstance(relations, list | None):
        raise ForeignError(f"'relations' must be a list, not {type(relations).__name__}")
    return ForeignMemory(
        id=text_of(record, "id"),
        text=text_of(record, "content"),
        at=begin_of(record, "timestamp"),
        user=text_of(record, "agent_owner", default=""),
        agent=text_of(record, "agent_id", default=""),
        store="memory" if scope.lower() == "agent" else "user",
        kind=text_of(record, "thought_type", default=""),
    )


def _replaced_ids(relations: object) -> Sequence[str]:
    given = relations if isinstance(relations, list) else []
    return [
        id_text(one.get("target_id"))
        for one in given
        if isinstance(one, dict) and str(one.get("kind")).lower() in _REPLACING_RELATIONS
    ]


def _with_replaced(
    kept: ForeignMemory, targets: Sequence[str], texts: Mapping[str, str]
) -> ForeignMemory:
    old = next((texts[target] for target in targets if target in texts), "")
    return msgspec.structs.replace(kept, replaces=old)
