"""Finds the messages in a JSON value: alone, in a list, or below the fields of a conversation.

What the object around messages says (session, time, title, name) counts for those of them that do
not say it themselves.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any, NamedTuple

from memorybus_console.operations.ingest.reading import chats
from memorybus_console.operations.ingest.reading.contents import TEXT_FIELDS
from memorybus_console.operations.ingest.reading.json_files import JsonLine
from memorybus_console.operations.ingest.reading.names import (
    NAME_FIELDS,
    SESSION_FIELDS,
    TITLE_FIELDS,
    first_text,
    role_of,
    time_in,
)
from memorybus_console.operations.ingest.report import LeftOut, RefusedInput

_LISTS = (
    "messages", "chat_messages", "conversations", "conversation", "contents", "history", "turns",
    "dialogue", "chunks", "items", "data", "threads", "sessions", "chats",
)  # fmt: skip
"""The fields that may list messages or conversations."""

_AROUND = (
    "message", "data", "kwargs", "payload", "chat", "conversation", "session", "thread",
    "chunkedPrompt",
)  # fmt: skip
"""The fields of an object that may have all of a message or a conversation in them."""

_ID_FIELDS = ("uuid", "id")
_NAMES_A_TALK = ("chat_messages",)
"""The lists beside which ``name`` is the conversation's title, and nobody's name."""

_MAX_DEPTH = 8
"""How deep lists of messages may lie within each other (G10)."""

_MAX_AROUND = 3
"""How many objects may be around a message (G10)."""

_CONTENTS = (*TEXT_FIELDS, *_LISTS, "mapping")


class Surroundings(NamedTuple):
    """What the objects around a message say.

    Attributes:
        session: the id of the session.
        named: whether the file names it; else it is made of the file's name.
        at: the time, milliseconds; None if it is not said.
        title: the title; "" if it is not said.
        name: the name of the person; "" if it is not said.
    """

    session: str
    named: bool = False
    at: int | None = None
    title: str = ""
    name: str = ""


class FoundMessage(NamedTuple):
    """An object that should be a message, its place and what is around it."""

    where: str
    value: dict[str, Any]
    around: Surroundings


class Unfolding:
    """Finds messages.

    Args:
        name: the file's name.
        zone: the zone of times that name none.
        left_out: gets what is no object.
    """

    def __init__(self, name: str, zone: tzinfo, left_out: LeftOut) -> None:
        self._name = name
        self._zone = zone
        self._left_out = left_out

    def messages(self, line: JsonLine, *, own: str, listed: str) -> Iterator[FoundMessage]:
        """Yield the messages of a value.

        Args:
            line: the value.
            own: the session of a message that names none.
            listed: the session of the messages of a list that names none.
        """
        yield from self._unfold(line.value, line.where, Surroundings(own), listed, _MAX_DEPTH)

    def _unfold(
        self, value: Any, where: str, around: Surroundings, listed: str, depth: int
    ) -> Iterator[FoundMessage]:
        value = _unwrapped(value)
        key, items = _items_of(value)
        if items is not None and depth:
            inner = self._surroundings(value, key, around, listed)
            for index, item in enumerate(items):
                place = f"{where}: {key}[{index}]"
                nested = f"{inner.session}:{index + 1}"
                yield from self._unfold(item, place, inner, nested, depth - 1)
        elif isinstance(value, dict):
            session = first_text(value, SESSION_FIELDS)
            own = around._replace(session=session, named=True) if session else around
            yield FoundMessage(where, value, own)
        else:
            why = f"{where}: expected a message object, not {describe_type(value)}"
            self._left_out.refuse(RefusedInput(self._name, why, where))

    def _surroundings(
        self, value: Any, key: str, around: Surroundings, listed: str
    ) -> Surroundings:
        if isinstance(value, list):
            return around._replace(session=listed, named=False)
        session = first_text(value, SESSION_FIELDS)
        own_id = first_text(value, _ID_FIELDS)
        by_number = own_id.isdecimal()
        name = first_text(value, NAME_FIELDS)
        return Surroundings(
            session=session or (f"{around.session}:{own_id}" if by_number else own_id) or listed,
            named=bool(session or (own_id and not by_number)),
            at=time_in(value, self._zone, self._left_out) or around.at,
            title=first_text(value, TITLE_FIELDS) or around.title,
            name=around.name if key in _NAMES_A_TALK else name or around.name,
        )


def _items_of(value: Any) -> tuple[str, Sequence[Any] | None]:
    """Return the list in a value, and the field that has it; None if there is none."""
    if isinstance(value, list):
        return "", value
    if not isinstance(value, dict):
        return "", None
    if isinstance(value.get("mapping"), dict):
        return "mapping", chats.chatgpt_messages(value)
    if isinstance(value.get("chat_messages"), list):
        return "chat_messages", chats.claude_ai_messages(value)
    lists = (key for key in _LISTS if isinstance(value.get(key), list))
    key = next(lists, "")
    is_list = key and (key == "messages" or role_of(value) is None)
    return (key, value[key]) if is_list else ("", None)


def _unwrapped(value: Any) -> Any:
    """Return the message or conversation in an object, with the fields of that object."""
    for _ in range(_MAX_AROUND):
        inner = _inner_of(value) if isinstance(value, dict) else None
        if inner is None:
            break
        said = {name: field for name, field in inner.items() if field is not None}
        role = role_of(value)
        outer = value if role is None else value | {"role": role}
        value = {name: field for name, field in outer.items() if field is not inner} | said
    return value


def _inner_of(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if any(isinstance(value.get(name), str | list) for name in _CONTENTS):
        return None
    inner = (value[name] for name in _AROUND if isinstance(value.get(name), dict))
    return next(
        (one for one in inner if role_of(one) or any(name in one for name in _CONTENTS)), None
    )


def describe_type(value: Any) -> str:
    """Return the type of a JSON value in words."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    return "null" if value is None else names.get(type(value), "a number")
