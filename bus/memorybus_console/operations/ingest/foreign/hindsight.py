"""Hindsight: the memories of a bank, as ``list_memories`` returns them.

Read in hindsight-client 1.1.0 (``hindsight_client_api/models/memory_unit_list_item.py`` and
``list_memory_units_response.py``): ``{"items": [{"id", "text", "date", "fact_type", "document_id",
"mentioned_at", "occurred_start", "metadata", "state", "invalidated_at", …}], "total", "limit",
"offset"}``. The ZIP archive of ``export_bank`` is not read.
"""

from memorybus_console.operations.ingest.foreign.model import (
    ForeignMemory,
    ParsedExport,
    ParsedRecord,
    Record,
    text_of,
    time_of,
)
from memorybus_console.operations.ingest.foreign.reading import Export, parse_export

LISTS = ("items", "memories")
_DERIVED = "observation"


def parse(export: Export) -> ParsedExport:
    """Return the facts of an export.

    Observations are left out: Hindsight makes them from facts that the export has, too. A bank is
    no person: a memory belongs to the ``user_id`` in its ``metadata``, if there is one.

    Raises:
        ForeignError: the file cannot be read.
    """
    return parse_export(export, LISTS, _parse_fact)


def _parse_fact(record: Record) -> ParsedRecord:
    kind = text_of(record, "fact_type", default="")
    if kind == _DERIVED:
        return None
    at = time_of(record, "mentioned_at", "date", "occurred_start")
    metadata = record.value.get("metadata")
    return ForeignMemory(
        id=text_of(record, "id"),
        text=text_of(record, "text"),
        at=at,
        until=_until_of(record, at),
        user=_metadata_text(metadata, "user_id"),
        agent=_metadata_text(metadata, "agent_id"),
        session=text_of(record, "document_id", default=""),
        kind=kind,
    )


def _until_of(record: Record, at: int | None) -> int | None:
    if record.value.get("state") != "invalidated":
        return None
    return time_of(record, "invalidated_at", "updated_at") or at or 0


def _metadata_text(metadata: object, name: str) -> str:
    value = metadata.get(name) if isinstance(metadata, dict) else None
    return value if isinstance(value, str) else ""
