"""Reads what is said in an event: utterances, and the passages in which they are kept; pure.

Kinds: ``user`` and ``assistant`` (turns), ``answer`` (an assistant's long text in a turn),
``compression`` (known only from a compression), ``delegation`` (a task and its result).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from memorybus.events import Delegated, Message, TurnCompleted

from memorybus_providers.ranking.facts import ANSWER, MAX_TALK_CHARS, clean, passages

Piece = tuple[int, "Utterance", str]
"""The number of a passage within its event, from 0; the utterance; the passage."""


class Utterance(msgspec.Struct, frozen=True):
    """Something said in a session."""

    kind: str
    speaker: str
    content: str
    tags: str = ""


def turn_utterances(event: TurnCompleted) -> Iterable[Utterance]:
    """Return a turn's utterances; if neither side is given as text, its messages are used."""
    if not event.user and not event.assistant:
        return message_utterances(event.messages)
    return (
        Utterance("user", event.user_name or "user", event.user),
        Utterance("assistant", event.assistant_name or "assistant", event.assistant),
    )


def delegation_utterances(event: Delegated) -> Iterable[Utterance]:
    """Return a task and, right after it, its result, so that a recall finds both together."""
    return [
        Utterance("delegation", speaker, text, tags=event.child_session)
        for speaker, text in (("assistant", event.task), ("sub-agent", event.result))
    ]


def message_utterances(messages: Sequence[Message], kind: str = "") -> Iterator[Utterance]:
    """Yield what people and agents said in chat messages, without images and tools' output."""
    for message in messages:
        role = message.get("role")
        if role in {"user", "assistant"}:
            speaker = str(message.get("name") or role)
            for text in _texts(message.get("content")):
                yield Utterance(kind or str(role), speaker, text)


def numbered_passages(utterances: Iterable[Utterance]) -> Iterator[Piece]:
    """Yield the passages of an event's utterances with numbers, even if not all are stored."""
    number = 0
    for utterance in utterances:
        content = clean(utterance.content)
        is_answer = utterance.kind == "assistant" and len(content) > MAX_TALK_CHARS
        kept = msgspec.structs.replace(utterance, kind=ANSWER) if is_answer else utterance
        for text in passages(content):
            yield number, kept, text
            number += 1


def unsaid_passages(utterances: Iterable[Utterance], before: Iterable[str]) -> list[Piece]:
    """Return the passages, each once, that are not among the texts that were said before."""
    found = list(numbered_passages(utterances))
    texts = {text for _, _, text in found}
    new = texts - {text for text in before if text in texts}
    first = {text: number for number, _, text in reversed(found) if text in new}
    return [piece for piece in found if first.get(piece[2]) == piece[0]]


def _texts(content: object) -> list[str]:
    """Return the texts of a message's content: a string, or a list of typed parts."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list | tuple) else ()
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return [text for text in texts if isinstance(text, str)]
