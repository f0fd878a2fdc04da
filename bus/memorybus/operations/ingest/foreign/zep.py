"""Zep: messages of its threads, and the facts of its graph.

Read in zep-cloud 4.0.1 (``zep_cloud/types``): ``Message`` has ``uuid``, ``role``, ``name``,
``content``, ``created_at``, ``reference_time``, ``thread_uuid``; ``Edge`` has ``uuid``, ``fact``,
``created_at``, ``valid_at``, ``invalid_at``, ``expired_at``, ``user_uuid``. A page of either is
``{"items": […], "next_cursor", "total_size"}``. Earlier releases list ``{"messages": […]}`` with
the role in ``role_type`` and the speaker's name in ``role``, and ``{"edges": […]}``.
"""

from pathlib import Path

from memorybus.operations.ingest.foreign.model import (
    Found,
    Kept,
    Parsed,
    Record,
    Said,
    Speaker,
    parsed,
    text_of,
    time_of,
)
from memorybus.operations.ingest.foreign.reading import records

LISTS = ("items", "messages", "edges", "facts")
_SPEAKERS: dict[str, Speaker] = {"user": "user", "assistant": "assistant"}


def parse(data: bytes, name: str) -> Parsed:
    """Return the messages and the facts of an export.

    Messages that name no thread belong to one named as the file. Those of a system or a tool are
    left out. A fact that Zep has let expire is written, and removed at that time.

    Raises:
        ForeignError: the file cannot be read.
    """
    thread = Path(name).stem
    return parsed(records(data, name, LISTS), lambda record: _found(record, thread))


def _found(record: Record, thread: str) -> Found:
    return _fact(record) if "fact" in record.value else _message(record, thread)


def _fact(record: Record) -> Kept:
    return Kept(
        id=text_of(record, "uuid"),
        text=text_of(record, "fact"),
        at=time_of(record, "created_at", "valid_at"),
        until=time_of(record, "expired_at"),
        user=text_of(record, "user_id", "user_uuid", default=""),
        kind="fact",
    )


def _message(record: Record, thread: str) -> Found:
    role, named = text_of(record, "role_type", "role"), "role_type" in record.value
    speaker = _SPEAKERS.get(role.lower())
    if speaker is None:
        return None
    return Said(
        id=text_of(record, "uuid"),
        speaker=speaker,
        text=text_of(record, "content"),
        session=text_of(record, "thread_id", "thread_uuid", "session_id", default=thread),
        at=time_of(record, "reference_time", "created_at"),
        user=text_of(record, "user_id", "user_uuid", default="") if speaker == "user" else "",
        name=text_of(record, "role" if named else "name", default=""),
    )
