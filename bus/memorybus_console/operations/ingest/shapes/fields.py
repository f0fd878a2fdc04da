"""The names that exports have for ids, times, titles and speakers."""

from collections.abc import Iterable, Mapping
from datetime import tzinfo
from typing import Any

from memorybus.text.times import parse_timestamp

from memorybus_console.operations.ingest.shapes.left_out import LeftOut

SESSION_FIELDS = ("session_id", "session", "conversation_id", "sessionId", "conversationId",
                  "thread_id", "chat_id")  # fmt: skip
OWN_ID_FIELDS = ("uuid", "id", "message_id", "messageId", "_id")
TITLE_FIELDS = ("title", "name")
NAME_FIELDS = ("name", "user_name", "username", "speaker_name", "sender_name")
TIME_FIELDS = (
    "timestamp", "created_at", "create_time", "createdAt", "createTime", "created", "at", "ts",
    "time", "datetime", "date", "sent_at", "start_time",
)  # fmt: skip
_SECONDS_FIELDS = ("$date", "seconds", "_seconds", "$numberLong")
"""The fields of a time that is an object, as databases write it."""


def first_text(value: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the first of these fields that is a text or a whole number; "" if there is none."""
    return next(filter(None, (id_text(value.get(name)) for name in names)), "")


def id_text(value: object) -> str:
    """Return an id, which may be a number, as a text; "" for anything else."""
    is_id = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value) if is_id and not _is_endless(value) else ""


def _is_endless(value: object) -> bool:
    """Say whether a number has more digits than an id."""
    return isinstance(value, int) and value.bit_length() > _MAX_ID_BITS


_MAX_ID_BITS = 256


def time_in(value: Mapping[str, Any], zone: tzinfo, left_out: LeftOut) -> int | None:
    """Return the first readable time of an object, milliseconds; None if it has none.

    Args:
        value: the object.
        zone: the zone of times that name none.
        left_out: gets how many times are none.
    """
    for name in TIME_FIELDS:
        given = value.get(name)
        if given in (None, ""):
            continue
        try:
            return parse_timestamp(plain_time(given), zone)
        except ValueError:
            left_out.drop("unreadable times")
    return None


def plain_time(value: Any) -> Any:
    """Return a time without the object around it."""
    for _ in range(_MAX_AROUND):
        if not isinstance(value, Mapping):
            break
        value = next((value[name] for name in _SECONDS_FIELDS if name in value), None)
    return value


_MAX_AROUND = 3
"""How many objects may be around a time: ``{"$date": {"$numberLong": "…"}}``."""
