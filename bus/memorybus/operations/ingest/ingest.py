"""Publishing recorded conversations: the events that an agent would have published live.

Every turn is published with its ordinal and a time that does not change between runs, so that its
event id and payload are the same each time: a second ingest of a file adds nothing (G2).
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.errors import EventError
from memorybus.operations.ingest.transcripts import (
    RecordedSession,
    Transcript,
    TranscriptError,
    read_transcript,
)

PLATFORM = "ingest"


class ParsedFile(msgspec.Struct, frozen=True):
    """A parsed file. Its modification time stands for those that it does not give."""

    path: Path
    transcript: Transcript
    modified_ms: int


class RefusedInput(msgspec.Struct, frozen=True):
    """Something that was not published, and why."""

    what: str
    why: str


class PublishedTurns(msgspec.Struct, frozen=True):
    """What one file brought."""

    turns: int
    refused: tuple[RefusedInput, ...] = ()


def load_files(paths: Iterable[Path]) -> tuple[list[ParsedFile], list[RefusedInput]]:
    """Parse every file; one that cannot be read whole is refused, the others are not."""
    sources: list[ParsedFile] = []
    refused: list[RefusedInput] = []
    for path in paths:
        try:
            found = ParsedFile(path, read_transcript(path), path.stat().st_mtime_ns // 1_000_000)
            _check_sessions_apart(found, sources)
            sources.append(found)
        except TranscriptError as error:
            refused.append(RefusedInput(str(path), str(error)))
    return sources, refused


def _check_sessions_apart(found: ParsedFile, earlier: Iterable[ParsedFile]) -> None:
    """Refuse a file whose sessions would mix with those of a different file."""
    known = {c.session: (source, c) for source in earlier for c in source.transcript.conversations}
    for conversation in found.transcript.conversations:
        source, other = known.get(conversation.session, (found, conversation))
        if other != conversation and conversation.session.startswith(found.path.stem):
            raise TranscriptError(
                f"{found.path}: its session {conversation.session!r} would mix with that of "
                f"{source.path}; rename one of the files"
            )


def publish_file(
    bus: MemoryBus,
    source: ParsedFile,
    *,
    agent: str | None,
    user: str | None,
    on_turn: Callable[[], None],
) -> PublishedTurns:
    """Publish a file's conversations in order, each continuing the one it names.

    A turn or a session that the bus refuses (too large, an id it cannot take) is reported and the
    rest goes on.

    Args:
        bus: where to.
        source: the parsed file.
        agent: whose memories; the setting's default if None.
        user: whose memories; the speaker the file names, else the setting's default, if None.
        on_turn: called after each turn, published or refused.

    Raises:
        SpoolFull: the spool's bound is reached; what was published stays published.
    """
    sessions: dict[str, Session] = {}
    turns = 0
    refused: list[RefusedInput] = []
    for conversation in source.transcript.conversations:
        try:
            session = _open_session(bus, conversation, sessions, agent, user, source.modified_ms)
        except EventError as error:
            refused.append(RefusedInput(f"{source.path}: {conversation.session}", str(error)))
            continue
        sessions[conversation.session] = session
        for refusal in _publish_turns(session, conversation, source):
            on_turn()
            if refusal is None:
                turns += 1
            else:
                refused.append(refusal)
    return PublishedTurns(turns, tuple(refused))


def _open_session(
    bus: MemoryBus,
    conversation: RecordedSession,
    sessions: Mapping[str, Session],
    agent: str | None,
    user: str | None,
    modified_ms: int,
) -> Session:
    at = conversation.at or modified_ms
    before = sessions.get(conversation.after)
    if before is not None:
        return before.switched_to(conversation.session, reason="resume", at=at)
    return bus.session(
        conversation.session,
        agent=agent,
        user=user or conversation.user or None,
        platform=PLATFORM,
        title=conversation.title,
        warm=False,
        at=at,
    )


def _publish_turns(
    session: Session, conversation: RecordedSession, source: ParsedFile
) -> Iterable[RefusedInput | None]:
    for ordinal, turn in enumerate(conversation.turns):
        try:
            session.turn_completed(
                turn.user,
                turn.assistant,
                messages=turn.messages,
                ordinal=ordinal,
                user_name=turn.user_name,
                assistant_name=turn.assistant_name,
                at=turn.at or conversation.at or source.modified_ms,
            )
            yield None
        except EventError as error:
            what = f"{source.path}: {conversation.session}: turn {ordinal + 1}"
            yield RefusedInput(what, str(error))


class IngestReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an ingest did; its ``--json``.

    Attributes:
        files: files read whole.
        sessions: sessions in them.
        turns: turns published, whether the log knew them or not.
        events: events read in files of events, whether the log knew them or not.
        skipped: messages without content, left out.
        new_events: how much the log grew meanwhile; None if Redis did not answer.
        level: ``logged`` if Redis has everything, else ``spooled``; None if no file could be read
            and hence nothing was published.
        refused: files and turns that were not published, and why.
    """

    files: int = 0
    sessions: int = 0
    turns: int = 0
    events: int = 0
    skipped: int = 0
    new_events: int | None = None
    level: Literal["logged", "spooled"] | None = None
    refused: tuple[RefusedInput, ...] = ()
