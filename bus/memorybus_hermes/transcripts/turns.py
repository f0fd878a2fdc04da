"""Cuts a turn out of Hermes's transcript and bounds it for publishing. Pure functions.

After every turn Hermes passes its whole transcript, with its own marks in it. The bus publishes
only the messages of this turn, and of each message only the keys of OpenAI's format
(`PUBLISHED_KEYS`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from memorybus.text.bounding import LONGEST_TEXT, SHORTEST_TEXT, fit_messages, plain_fields, shorten

from memorybus_hermes.transcripts.scaffolding import opens_turn, text_of, user_text

PUBLISHED_KEYS = ("role", "content", "name", "tool_calls", "tool_call_id", "tool_name")
"""The keys of a message that are published; the others are Hermes's own (reasoning, marks)."""


_MAX_BYTES_PER_CHAR = 4
"""The most bytes that a character takes."""


class TranscriptTurn(msgspec.Struct, frozen=True):
    """A turn's place in a transcript.

    Attributes:
        ordinal: how many turns come before it; None if the transcript does not contain it.
    """

    ordinal: int | None
    messages: Sequence[Mapping[str, Any]] = ()


def find_turn(transcript: Sequence[Mapping[str, Any]] | None, user: str) -> TranscriptTurn:
    """Return the last turn that a user's words opened, or the very last turn if none matches.

    Args:
        transcript: Hermes's messages; a later turn may have begun in them already.
        user: what the person said, as Hermes passes it to `sync_turn`.
    """
    messages = [m for m in transcript or () if isinstance(m, Mapping)]
    starts = [i for i, message in enumerate(messages) if opens_turn(message)]
    if not starts:
        return TranscriptTurn(None)
    matching = [n for n, i in enumerate(starts) if _has_words(messages[i], user)]
    ordinal = matching[-1] if matching else len(starts) - 1
    end = starts[ordinal + 1] if ordinal + 1 < len(starts) else len(messages)
    return TranscriptTurn(ordinal, messages[starts[ordinal] : end])


def _has_words(message: Mapping[str, Any], user: str) -> bool:
    text = text_of(message.get("content"))
    return user == text or user_text(text).strip() == user.strip()


def bounded_messages(
    messages: Sequence[Mapping[str, Any]], room: int
) -> tuple[dict[str, Any], ...]:
    """Return messages as they are published, in at most `room` bytes; see `fit_messages`."""
    return fit_messages(list(map(_published, messages)), room, LONGEST_TEXT)


def plain_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with only `PUBLISHED_KEYS`, and without long texts."""
    return plain_fields(_published(message), LONGEST_TEXT)


def _published(message: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: message[key] for key in PUBLISHED_KEYS if message.get(key)}


def clip_text(text: str, room: int) -> str:
    """Return a text in at most about `room` bytes; a mark replaces the middle of a longer one."""
    if len(text) * _MAX_BYTES_PER_CHAR <= room or len(text.encode("utf-8", "replace")) <= room:
        return text
    return shorten(text, max(SHORTEST_TEXT, room // _MAX_BYTES_PER_CHAR))
