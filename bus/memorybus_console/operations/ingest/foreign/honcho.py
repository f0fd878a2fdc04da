"""Honcho: messages of its sessions, and conclusions about its peers.

Read in honcho-ai 2.7.0 (``honcho/api_types.py``): ``MessageResponse`` has ``id``, ``content``,
``peer_id``, ``session_id``, ``created_at``; ``ConclusionResponse`` has ``id``, ``content``,
``observer_id``, ``observed_id``, ``session_id``, ``created_at``. A page of either is ``{"items":
[…], "page", "size", "total", "pages"}`` (``honcho/pagination.py``). Honcho has no export of its
own: a file contains such pages, or their items, in any mixture.
"""

from memorybus_console.operations.ingest.foreign.model import (
    ForeignMemory,
    ForeignMessage,
    ParsedExport,
    ParsedRecord,
    Record,
    text_of,
    time_of,
)
from memorybus_console.operations.ingest.foreign.reading import Export, parse_export

LISTS = ("items", "messages", "conclusions", "sessions")


def parse(export: Export) -> ParsedExport:
    """Return the messages and the conclusions of an export.

    Honcho's peers have no roles: a peer that is not known as an agent counts as a person.

    Raises:
        ForeignError: the file cannot be read.
    """
    return parse_export(export, LISTS, _parse_record)


def _parse_record(record: Record) -> ParsedRecord:
    return _parse_conclusion(record) if "observed_id" in record.value else _parse_message(record)


def _parse_message(record: Record) -> ForeignMessage:
    return ForeignMessage(
        id=text_of(record, "id"),
        speaker="user",
        text=text_of(record, "content"),
        session=text_of(record, "session_id"),
        at=time_of(record, "created_at"),
        user=text_of(record, "peer_id"),
    )


def _parse_conclusion(record: Record) -> ForeignMemory:
    observer, observed = text_of(record, "observer_id"), text_of(record, "observed_id")
    return ForeignMemory(
        id=text_of(record, "id"),
        text=text_of(record, "content"),
        at=time_of(record, "created_at"),
        user=observed,
        agent=observer if observer != observed else "",
        session=text_of(record, "session_id", default=""),
        kind="conclusion",
    )
