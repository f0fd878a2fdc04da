"""Finds messages in JSON values, in whichever form they are written, and makes turns of them.

A message stands alone, in a list, or below the fields of a conversation; what is around it
(session, time, title, name) counts if it does not say it itself.

A turn is a person's message and everything up to the next one: the assistant's texts (joined by an
empty line where a tool call stood between them) and its tool calls.
Messages that name no session belong to the file's own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from operator import itemgetter
from typing import Any, NamedTuple

from memorybus.events import Message

from memorybus_console.operations.ingest.reading.contents import (
    TEXT_FIELDS,
    MessageContent,
    content_of,
    other_fields,
)
from memorybus_console.operations.ingest.reading.json_files import JsonFile, JsonLine
from memorybus_console.operations.ingest.reading.model import (
    ReadingOptions,
    RecordedSession,
    RecordedTurn,
    Transcript,
    with_unique_ids,
)
from memorybus_console.operations.ingest.reading.names import (
    NAME_FIELDS,
    OWN_ID_FIELDS,
    REASONING,
    ROLE_FIELDS,
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

_MAX_DEPTH = 8  # how deep lists of messages may lie within each other (G10)

_MAX_AROUND = 3  # how many objects may be around a message (G10)

_CONTENTS = (*TEXT_FIELDS, *_LISTS, "mapping")


class Surroundings(NamedTuple):
    """What the objects around a message say."""

    session: str
    named: bool = False  # whether the file names it; else it is made of the file's name
    at: int | None = None  # the time, milliseconds; None if it is not said
    title: str = ""  # the title; "" if it is not said
    name: str = ""  # the name of the person; "" if it is not said


class FoundMessage(NamedTuple):
    """An object that should be a message, its place and what is around it."""

    where: str
    value: dict[str, Any]
    around: Surroundings


@dataclass
class Unfolding:
    """Finds messages.

    Args:
        zone: the zone of times that name none.
    """

    name: str
    zone: tzinfo
    left_out: LeftOut

    def messages(self, line: JsonLine, *, own: str, listed: str) -> Iterator[FoundMessage]:
        """Yield the messages of a value.

        Args:
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
            self.left_out.refuse(RefusedInput(self.name, why, where))

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
            at=time_in(value, self.zone, self.left_out) or around.at,
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
        return "mapping", chatgpt_messages(value)
    if isinstance(value.get("chat_messages"), list):
        return "chat_messages", claude_ai_messages(value)
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
        stated = {name: field for name, field in inner.items() if field is not None}
        role = role_of(value)
        outer = value if role is None else value | {"role": role}
        value = {name: field for name, field in outer.items() if field is not inner} | stated
    return value


def _inner_of(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if any(isinstance(value.get(name), str | list) for name in _CONTENTS):
        return None
    inner = (value[name] for name in _AROUND if isinstance(value.get(name), dict))
    return next(
        (field for field in inner if role_of(field) or any(name in field for name in _CONTENTS)),
        None,
    )


def describe_type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    return "null" if value is None else names.get(type(value), "a number")


SPOKEN_ROLES = ("user", "assistant")
_AUTHOR_FIELDS = ("author", "sender", "from", "speaker")


class _Message(NamedTuple):
    role: str
    text: str
    message: Message
    around: Surroundings
    name: str
    at: int | None


def parse_messages(
    file: JsonFile, name: str, stem: str, options: ReadingOptions, left_out: LeftOut
) -> Transcript:
    """Group the messages of a file into sessions and turns.

    Args:
        stem: the session of messages that name none.
        options: how times are read, and how large a turn may be.
    """
    reader = _MessageReader(name, options, left_out)
    unfolding = Unfolding(name, options.zone, left_out)
    sessions: dict[str, list[_Message]] = {}
    for line in file.lines:
        listed = stem if file.single else f"{stem}:{line.number}"
        for item in unfolding.messages(line, own=stem, listed=listed):
            message = reader.read(item)
            if message is not None:
                sessions.setdefault(message.around.session, []).append(message)
    recorded = (reader.session(session, messages) for session, messages in sessions.items())
    return Transcript(
        conversations=tuple(session for session in recorded if session.turns),
        skipped=reader.skipped,
        left_out=left_out,
    )


@dataclass
class _MessageReader:
    name: str
    options: ReadingOptions
    left_out: LeftOut
    skipped: int = 0

    def read(self, message: FoundMessage) -> _Message | None:
        """Return a message; None if it is none, or says nothing."""
        role = role_of(message.value)
        if role is None:
            self._refuse(message)
            return None
        if role == REASONING:
            self.left_out.drop(REASONING)
            return None
        content = content_of(message.value, role, self.left_out)
        if role == "user" and content.by_tool and not content.text:
            role = "tool"  # Anthropic and Gemini send what a tool returned as the user
        if _is_silent(role, content, message.value):
            self.skipped += 1
            return None
        return _Message(
            role,
            content.text,
            _kept_message(message.value, role, content, self.left_out),
            message.around,
            _name_of(message, role),
            time_in(message.value, self.options.zone, self.left_out),
        )

    def _refuse(self, message: FoundMessage) -> None:
        named = next(
            (str(message.value[f])[:40] for f in ROLE_FIELDS if message.value.get(f)), None
        )
        role = (
            f"the role {named!r} is not known"
            if named
            else "it names no role and lists no messages"
        )
        self.left_out.refuse(
            RefusedInput(self.name, f"{message.where}: no message: {role}", message.where)
        )

    def session(self, session: str, messages: Sequence[_Message]) -> RecordedSession:
        ordered = _in_order(messages)
        turns = with_unique_ids([self._turn(group) for group in _group_by_turn(ordered)])
        around = messages[0].around
        at = next((turn.at for turn in turns if turn.at is not None), None)
        return RecordedSession(
            session=session,
            named=all(message.around.named for message in messages),
            turns=turns,
            at=around.at or at,
            title=around.title,
        )

    def _turn(self, group: Sequence[_Message]) -> RecordedTurn:
        user, assistant = _join_texts(group, "user"), _join_texts(group, "assistant")
        spoken = next(message for message in group if message.role in SPOKEN_ROLES)
        at = next((message.at for message in group if message.at is not None), None)
        return RecordedTurn(
            user=user,
            assistant=assistant,
            messages=()
            if _is_plain(group)
            else self.options.fitting(
                [message.message for message in group], user + assistant, self.left_out
            ),
            user_name=_first_name(group, "user"),
            assistant_name=_first_name(group, "assistant"),
            at=spoken.around.at if at is None else at,
            source_id=first_text(spoken.message, OWN_ID_FIELDS),
        )


def _in_order(messages: Sequence[_Message]) -> Sequence[_Message]:
    """Return messages by their times if all have one; some exports begin with the newest."""
    times = [message.at for message in messages if message.at is not None]
    if len(times) < len(messages):
        return messages
    newest_first = times[0] > times[-1]
    ordered = reversed(messages) if newest_first else messages
    return sorted(ordered, key=lambda message: message.at or 0)


def _is_silent(role: str, content: MessageContent, message: Message) -> bool:
    carries = message.get("tool_calls") or (isinstance(content.kept, list) and content.kept)
    return role in SPOKEN_ROLES and not content.text and not carries


def _kept_message(
    message: Message, role: str, content: MessageContent, left_out: LeftOut
) -> Message:
    """Return a message in OpenAI's form, with all fields that this does not replace."""
    is_openai = message.get("role") == role and "content" in message
    replaced = () if is_openai else (*ROLE_FIELDS, *TEXT_FIELDS)
    fields = other_fields(message, left_out)
    kept = {name: value for name, value in fields.items() if name not in replaced}
    return kept | {"role": role, "content": content.kept}


def _name_of(message: FoundMessage, role: str) -> str:
    authors = (message.value.get(field) for field in _AUTHOR_FIELDS)
    objects: Iterable[dict[str, Any]] = (author for author in authors if isinstance(author, dict))
    names = (first_text(source, NAME_FIELDS) for source in (message.value, *objects))
    return next(filter(None, names), message.around.name if role == "user" else "")


def _group_by_turn(messages: Sequence[_Message]) -> Iterator[list[_Message]]:
    """Begin a group at each user message; messages before the first one belong to its group."""
    group: list[_Message] = []
    for message in messages:
        if message.role == "user" and any(other.role in SPOKEN_ROLES for other in group):
            yield group
            group = []
        group.append(message)
    if any(message.role in SPOKEN_ROLES for message in group):
        yield group


def _is_plain(group: Sequence[_Message]) -> bool:
    """Whether the two sides contain the whole turn, so that messages would only repeat them."""
    roles = [message.role for message in group]
    return roles in (["user"], ["assistant"], ["user", "assistant"]) and all(
        message.message == {"role": message.role, "content": message.text} for message in group
    )


def _join_texts(group: Sequence[_Message], role: str) -> str:
    return "\n\n".join(message.text for message in group if message.role == role and message.text)


def _first_name(group: Sequence[_Message], role: str) -> str:
    return next((message.name for message in group if message.role == role and message.name), "")


_SHOWN_TO = (None, "", "all")  # the recipients of a message that the person saw; others are tools


class _Node(NamedTuple):
    parent: object
    at: object
    message: Mapping[str, Any]


def chatgpt_messages(conversation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of the branch that was shown last, without hidden ones and calls."""
    nodes = {
        key: _Node(node.get("parent"), message.get("create_time"), message)
        for key, node in conversation["mapping"].items()
        if isinstance(node, dict)
        for message in [node["message"] if isinstance(node.get("message"), dict) else {}]
    }
    branch = _branch(nodes, conversation.get("current_node"))
    return [_plain(message) for message in branch if message and _is_shown(message)]


def claude_ai_messages(conversation: Mapping[str, Any]) -> list[Any]:
    """Return the messages of the branch that was shown last; a file stands for missing words."""
    messages = conversation["chat_messages"]
    nodes = {
        str(message.get("uuid")): _Node(
            message.get("parent_message_uuid"), message.get("created_at"), message
        )
        for message in messages
        if isinstance(message, dict)
    }
    if len(nodes) < len(messages):
        return list(messages)
    leaf = conversation.get("current_leaf_message_uuid")
    return [_with_files(message) for message in _branch(nodes, leaf)]


def _branch(nodes: Mapping[str, _Node], leaf: object) -> list[Mapping[str, Any]]:
    """Return the messages from the root to a leaf; to the newest one if there is no such leaf.

    If no node says which one is before it, their order in the file counts.
    """
    if not any(node.parent in nodes for node in nodes.values() if isinstance(node.parent, str)):
        return [node.message for node in nodes.values()]
    at: object = leaf if isinstance(leaf, str) and leaf in nodes else _newest(nodes)
    path: dict[str, _Node] = {}
    while isinstance(at, str) and at in nodes and at not in path:
        path[at] = nodes[at]
        at = nodes[at].parent
    return [node.message for node in path.values()][::-1]


def _newest(nodes: Mapping[str, _Node]) -> str:
    """Return the node with the latest time, of equal ones the last; without times the last one."""
    keys = list(nodes)[::-1]
    for kind in (int | float, str):
        timed = [(nodes[key].at, key) for key in keys if isinstance(nodes[key].at, kind)]
        if timed:
            return max(timed, key=itemgetter(0))[1]
    return keys[0]


def _is_shown(message: Mapping[str, Any]) -> bool:
    metadata = message.get("metadata")
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    return message.get("recipient") in _SHOWN_TO and hidden is not True


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    author = message.get("author")
    kept = {name: message[name] for name in ("id", "content", "create_time") if name in message}
    name = author.get("name") if isinstance(author, dict) else None
    return kept | {"role": author} | ({"name": name} if isinstance(name, str) else {})


def _with_files(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message; one that consists of files has their names as its words."""
    if message.get("text") or message.get("content"):
        return message
    listed = [message.get("attachments"), message.get("files")]
    files = [file for held in listed if isinstance(held, list) for file in held]
    names = [str(file.get("file_name") or "a file") for file in files if isinstance(file, dict)]
    return {**message, "text": "\n".join(f"[attached: {name}]" for name in names)}
