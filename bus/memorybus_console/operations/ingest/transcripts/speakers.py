"""Gives each named speaker of a transcript sessions of that speaker's own."""

from collections.abc import Iterator

import msgspec

from memorybus_console.operations.ingest.transcripts.model import (
    RecordedSession,
    RecordedTurn,
    Transcript,
)


def by_speaker(transcript: Transcript) -> Transcript:
    """Return a transcript in which each turn belongs to the person who is named in it.

    A session of several people becomes one for each of them, under the same id. Where the two sides
    are two people (LoCoMo), each gets only what that person said. Turns without a name stay where
    they are.
    """
    sessions = tuple(own for session in transcript.conversations for own in _split(session))
    return msgspec.structs.replace(transcript, conversations=sessions)


def _split(session: RecordedSession) -> Iterator[RecordedSession]:
    turns: dict[str, list[RecordedTurn]] = {}
    for turn in session.turns:
        for own in _sides(turn) if session.user else (turn,):
            turns.setdefault(own.user_name, []).append(own)
    for name, own_turns in turns.items():
        yield msgspec.structs.replace(session, user=name, turns=tuple(own_turns))


def _sides(turn: RecordedTurn) -> Iterator[RecordedTurn]:
    for name, text in ((turn.user_name, turn.user), (turn.assistant_name, turn.assistant)):
        if text:
            yield msgspec.structs.replace(
                turn, user=text, assistant="", user_name=name, assistant_name="", messages=()
            )
