"""OpenAI-style messages: one per line, or a list of them under ``messages``.

A turn is a user message and everything up to the next one: the assistant's texts (joined by an
empty line where a tool call stood between them) and its tool calls. A line may name its session;
lines without one belong to the file's own.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from memorybus.events import Message
from memorybus.operations.ingest.transcripts.model import (
    RecordedSession,
    RecordedTurn,
    Transcript,
    TranscriptError,
)
from memorybus.text.times import parse_timestamp

SESSION_FIELDS = ("session_id", "session", "conversation_id")
TIME_FIELDS = ("timestamp", "created_at", "at", "ts")
ID_FIELDS = ("id", "message_id", "uuid")
SPOKEN_ROLES = ("user", "assistant")
ROLES = ("system", "developer", "user", "assistant", "tool", "function")


class JsonLine(NamedTuple):
    """One parsed JSON value, its place (``file:line``) and its number in the file, from 1."""

    where: str
    number: int
    value: Any


class _Address(NamedTuple):
    """The session to which a message belongs, and whether the file names it."""

    session: str
    named: bool


class _Message(NamedTuple):
    where: str
    role: str
    text: str
    message: Message
    named: bool


def parse_messages(lines: Iterable[JsonLine], stem: str) -> Transcript:
    """Group messages into conversations and turns.

    Args:
        lines: the file's JSON values in order.
        stem: the session's id where a line names none.

    Raises:
        TranscriptError: a line is not a message; the message names its place.
    """
    return _group_by_session(_each_message(lines, stem))


def parse_document(document: JsonLine, stem: str) -> Transcript:
    """Group the messages of a file that is one object; they belong to the file's own session.

    Args:
        document: the object.
        stem: the session's id where the object and its messages name none.

    Raises:
        TranscriptError: a part of it is not a message; the message names its place.
    """
    own = _Address(stem, named=False)
    return _group_by_session(_each_message_of(document, own=own, listed=own))


def _group_by_session(messages: Iterable[tuple[_Address, JsonLine]]) -> Transcript:
    sessions: dict[str, list[_Message]] = {}
    skipped = 0
    for address, line in messages:
        said = _parse_message(line, named=address.named)
        if _is_silent(said):
            skipped += 1
        else:
            sessions.setdefault(address.session, []).append(said)
    conversations = (_build_session(session, said) for session, said in sessions.items())
    return Transcript(conversations=tuple(c for c in conversations if c.turns), skipped=skipped)


def _each_message(lines: Iterable[JsonLine], stem: str) -> Iterator[tuple[_Address, JsonLine]]:
    own = _Address(stem, named=False)
    for line in lines:
        listed = _Address(f"{stem}:{line.number}", named=False)
        yield from _each_message_of(line, own=own, listed=listed)


def _each_message_of(
    line: JsonLine, *, own: _Address, listed: _Address
) -> Iterator[tuple[_Address, JsonLine]]:
    """Yield the message of a line, or the messages that it lists, each with its session.

    Args:
        line: the line.
        own: the session of a message that names none.
        listed: the session of messages in a list if neither the list nor they name one.
    """
    _check_object(line.where, line.value)
    if "messages" not in line.value:
        yield _address_of(line.where, line.value, own), line
        return
    messages = line.value["messages"]
    if not isinstance(messages, list):
        raise TranscriptError(
            f"'messages' must be a list, not {_describe_type(messages)}", line.where
        )
    common = _address_of(line.where, line.value, listed)
    for index, message in enumerate(messages):
        where = f"{line.where}: messages[{index}]"
        _check_object(where, message)
        yield _address_of(where, message, common), JsonLine(where, line.number, message)


def _check_object(where: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise TranscriptError(f"expected a message object, not {_describe_type(value)}", where)


def _address_of(where: str, value: dict[str, Any], unnamed: _Address) -> _Address:
    """Return the session that an object names, or `unnamed`."""
    for name in SESSION_FIELDS:
        session = value.get(name)
        if isinstance(session, str | int) and not isinstance(session, bool) and session != "":
            return _Address(str(session), named=True)
        if session not in (None, ""):
            raise TranscriptError(f"{name!r} must be a text, not {_describe_type(session)}", where)
    return unnamed


def _parse_message(line: JsonLine, *, named: bool) -> _Message:
    role = line.value.get("role")
    if role not in ROLES:
        known = ", ".join(ROLES)
        raise TranscriptError(f"'role' must be one of {known}, not {role!r}", line.where)
    text = _text_of(line.where, line.value.get("content"))
    return _Message(line.where, role, text, line.value, named)


def _text_of(where: str, content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, (_text_of_part(where, part) for part in content)))
    raise TranscriptError(
        f"'content' must be a text or a list, not {_describe_type(content)}", where
    )


def _text_of_part(where: str, part: Any) -> str:
    """Return a part's text; "" for pictures and the like, which stay in the message."""
    text = part.get("text", "") if isinstance(part, dict) else part
    if not isinstance(text, str):
        raise TranscriptError(f"a part's 'text' must be a text, not {_describe_type(text)}", where)
    return text


def _is_silent(said: _Message) -> bool:
    carries = said.message.get("tool_calls") or isinstance(said.message.get("content"), list)
    return said.role in SPOKEN_ROLES and not said.text and not carries


def _build_session(session: str, said: Sequence[_Message]) -> RecordedSession:
    turns = tuple(_build_turn(group) for group in _group_by_turn(said))
    at = next((turn.at for turn in turns if turn.at is not None), None)
    named = all(one.named for one in said)
    return RecordedSession(session=session, named=named, turns=turns, at=at)


def _group_by_turn(said: Sequence[_Message]) -> Iterator[list[_Message]]:
    """Begin a group at each user message; messages before the first one belong to its group."""
    group: list[_Message] = []
    for one in said:
        if one.role == "user" and any(other.role in SPOKEN_ROLES for other in group):
            yield group
            group = []
        group.append(one)
    if any(one.role in SPOKEN_ROLES for one in group):
        yield group


def _build_turn(group: Sequence[_Message]) -> RecordedTurn:
    return RecordedTurn(
        user=_join_texts(group, "user"),
        assistant=_join_texts(group, "assistant"),
        messages=() if _is_plain(group) else tuple(one.message for one in group),
        user_name=_name_of(group, "user"),
        assistant_name=_name_of(group, "assistant"),
        at=_time_of(group),
        source_id=_source_id_of(group),
    )


def _is_plain(group: Sequence[_Message]) -> bool:
    """Say whether the two sides contain the whole turn, so that messages would only repeat them."""
    roles = [one.role for one in group]
    return roles in (["user"], ["assistant"], ["user", "assistant"]) and all(
        one.message == {"role": one.role, "content": one.text} for one in group
    )


def _join_texts(group: Sequence[_Message], role: str) -> str:
    return "\n\n".join(one.text for one in group if one.role == role and one.text)


def _name_of(group: Sequence[_Message], role: str) -> str:
    names = (one.message.get("name") for one in group if one.role == role)
    return next((name for name in names if isinstance(name, str)), "")


def _source_id_of(group: Sequence[_Message]) -> str:
    """Return the id of the user's message, or of the first one if the user wrote none."""
    first = next((one for one in group if one.role == "user"), group[0])
    ids = (first.message.get(name) for name in ID_FIELDS)
    return next((str(one) for one in ids if isinstance(one, str | int) and one != ""), "")


def _time_of(group: Sequence[_Message]) -> int | None:
    for one in group:
        for name in TIME_FIELDS:
            if one.message.get(name) is not None:
                return _parse_time(f"{one.where}: {name!r}", one.message[name])
    return None


def _parse_time(where: str, value: Any) -> int:
    try:
        return parse_timestamp(value)
    except (ValueError, OverflowError) as error:
        raise TranscriptError(str(error), where) from error


def _describe_type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    return "null" if value is None else names.get(type(value), "a number")
