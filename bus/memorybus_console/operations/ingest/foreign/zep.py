"""Zep: messages of its threads, and the facts of its graph.

Read in zep-cloud 4.0.1 (``zep_cloud/types``): ``Message`` has ``uuid``, ``role``, ``name``,
``content``, ``created_at``, ``reference_time``, ``thread_uuid``; ``Edge`` has ``uuid``, ``fact``,
``created_at``, ``valid_at``, ``invalid_at``, ``expired_at``, ``user_uuid``. A page of either is
``{"items": […], "next_cursor", "total_size"}``. Earlier releases list ``{"messages": […]}`` with
the role in ``role_type`` and the speaker's name in ``role``, and ``{"edges": […]}``.
"""

from pathlib import Path

from memorybus_console.operations.ingest.foreign.model import (
    ForeignMemory,
    ForeignMessage,
    ParsedExport,
    ParsedRecord,
    Record,
    Speaker,
    begin_of,
    text_of,
    time_of,
)
from memorybus_console.operations.ingest.foreign.reading import Export, parse_export
from memorybus_console.operations.ingest.shapes.roles import role_of

LISTS = ("items", "messages", "edges", "facts", "relevant_facts", "threads", "sessions")
_SPEAKERS: dict[str | None, Speaker] = {"user": "user", "assistant": "assistant"}


def parse(export: Export) -> ParsedExport:
    """Return the messages and the facts of an export.

    Messages without a thread belong to one with the file's name. Messages of a system or a tool are
    left out. A fact begins when it became true, and is removed when it ceased to be true.

    Raises:
        ForeignError: the file cannot be read.
    """
    thread = Path(export.name).stem
    return parse_export(export, LISTS, lambda record: _parse_record(record, thread))


def _parse_record(record: Record, thread: str) -> ParsedRecord:
    return _parse_fact(record) if "fact" in record.value else _parse_message(record, thread)


def _parse_fact(record: Record) -> ForeignMemory:
    return ForeignMemory(
        id=text_of(record, "uuid", "uuid_", "id"),
        text=text_of(record, "fact"),
        at=begin_of(record, "created_at"),
        user=text_of(record, "user_id", "user_uuid", default=""),
        kind="fact",
    )


def _parse_message(record: Record, thread: str) -> ParsedRecord:
    text_of(record, "role_type", "role")
    named = "role_type" in record.value
    speaker = _SPEAKERS.get(role_of(record.value))
    if speaker is None:
        return None
    return ForeignMessage(
        id=text_of(record, "uuid", "uuid_", "id"),
        speaker=speaker,
        text=text_of(record, "content"),
        session=text_of(record, "thread_id", "thread_uuid", "session_id", default=thread),
        at=time_of(record, "reference_time", "created_at"),
        user=text_of(record, "user_id", "user_uuid", default="") if speaker == "user" else "",
        name=text_of(record, "role" if named else "name", default=""),
    )
