"""Makes turns of messages, in whichever form they are written (`names`, `contents`).

A turn is a person's message and everything up to the next one: the assistant's texts (joined by an
empty line where a tool call stood between them) and its tool calls. A message may name its session;
those that name none belong to the file's own.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from memorybus.events import Message

from memorybus_console.operations.ingest.reading.contents import (
    TEXT_FIELDS,
    MessageContent,
    content_of,
    other_fields,
)
from memorybus_console.operations.ingest.reading.json_files import JsonFile
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
    first_text,
    role_of,
    time_in,
)
from memorybus_console.operations.ingest.reading.unfolding import (
    FoundMessage,
    Surroundings,
    Unfolding,
)
from memorybus_console.operations.ingest.report import LeftOut, RefusedInput

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
        file: the file's JSON values.
        name: its name, for places.
        stem: the session of messages that name none.
        options: how times are read, and how large a turn may be.
        left_out: gets what is no message.
    """
    reader = _MessageReader(name, options, left_out)
    unfolding = Unfolding(name, options.zone, left_out)
    sessions: dict[str, list[_Message]] = {}
    for line in file.lines:
        listed = stem if file.single else f"{stem}:{line.number}"
        for found in unfolding.messages(line, own=stem, listed=listed):
            message = reader.read(found)
            if message is not None:
                sessions.setdefault(message.around.session, []).append(message)
    recorded = (reader.session(session, said) for session, said in sessions.items())
    return Transcript(
        conversations=tuple(session for session in recorded if session.turns),
        skipped=reader.skipped,
        left_out=left_out,
    )


class _MessageReader:
    def __init__(self, name: str, options: ReadingOptions, left_out: LeftOut) -> None:
        self._name = name
        self._options = options
        self._left_out = left_out
        self.skipped = 0

    def read(self, found: FoundMessage) -> _Message | None:
        """Return a message; None if it is none, or says nothing."""
        role = role_of(found.value)
        if role is None:
            self._refuse(found)
            return None
        if role == REASONING:
            self._left_out.drop(REASONING)
            return None
        content = content_of(found.value, role, self._left_out)
        if role == "user" and content.by_tool and not content.text:
            role = "tool"  # Anthropic and Gemini send what a tool returned as the user
        if _is_silent(role, content, found.value):
            self.skipped += 1
            return None
        return _Message(
            role,
            content.text,
            _kept_message(found.value, role, content, self._left_out),
            found.around,
            _name_of(found, role),
            time_in(found.value, self._options.zone, self._left_out),
        )

    def _refuse(self, found: FoundMessage) -> None:
        named = next((str(found.value[f])[:40] for f in ROLE_FIELDS if found.value.get(f)), None)
        role = (
            f"the role {named!r} is not known"
            if named
            else "it names no role and lists no messages"
        )
        self._left_out.refuse(
            RefusedInput(self._name, f"{found.where}: no message: {role}", found.where)
        )

    def session(self, session: str, said: Sequence[_Message]) -> RecordedSession:
        """Return the turns of a session's messages."""
        ordered = _in_order(said)
        turns = with_unique_ids([self._turn(group) for group in _group_by_turn(ordered)])
        around = said[0].around
        at = next((turn.at for turn in turns if turn.at is not None), None)
        return RecordedSession(
            session=session,
            named=all(one.around.named for one in said),
            turns=turns,
            at=around.at or at,
            title=around.title,
        )

    def _turn(self, group: Sequence[_Message]) -> RecordedTurn:
        user, assistant = _join_texts(group, "user"), _join_texts(group, "assistant")
        spoken = next(one for one in group if one.role in SPOKEN_ROLES)
        at = next((one.at for one in group if one.at is not None), None)
        return RecordedTurn(
            user=user,
            assistant=assistant,
            messages=()
            if _is_plain(group)
            else self._options.fitting(
                [one.message for one in group], user + assistant, self._left_out
            ),
            user_name=_first_name(group, "user"),
            assistant_name=_first_name(group, "assistant"),
            at=spoken.around.at if at is None else at,
            source_id=first_text(spoken.message, OWN_ID_FIELDS),
        )


def _in_order(said: Sequence[_Message]) -> Sequence[_Message]:
    """Return messages by their times if all have one; some exports begin with the newest."""
    times = [one.at for one in said if one.at is not None]
    if len(times) < len(said):
        return said
    newest_first = times[0] > times[-1]
    return sorted(reversed(said) if newest_first else said, key=lambda one: one.at or 0)


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


def _name_of(found: FoundMessage, role: str) -> str:
    authors = (found.value.get(field) for field in _AUTHOR_FIELDS)
    objects: Iterable[dict[str, Any]] = (one for one in authors if isinstance(one, dict))
    names = (first_text(one, NAME_FIELDS) for one in (found.value, *objects))
    return next(filter(None, names), found.around.name if role == "user" else "")


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


def _is_plain(group: Sequence[_Message]) -> bool:
    """Say whether the two sides contain the whole turn, so that messages would only repeat them."""
    roles = [one.role for one in group]
    return roles in (["user"], ["assistant"], ["user", "assistant"]) and all(
        one.message == {"role": one.role, "content": one.text} for one in group
    )


def _join_texts(group: Sequence[_Message], role: str) -> str:
    return "\n\n".join(one.text for one in group if one.role == role and one.text)


def _first_name(group: Sequence[_Message], role: str) -> str:
    return next((one.name for one in group if one.role == role and one.name), "")
