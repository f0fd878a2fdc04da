"""Publishes recorded conversations: the events that an agent would have published live.

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
    """A parsed file. Its modification time is used where it gives no times."""

    path: Path
    transcript: Transcript
    modified_ms: int


class RefusedInput(msgspec.Struct, frozen=True):
    """Something that was not published, and why."""

    what: str
    why: str


class PublishedTurns(msgspec.Struct, frozen=True):
    """The turns of one file that were published or refused."""

    turns: int
    refused: tuple[RefusedInput, ...] = ()


def load_files(paths: Iterable[Path]) -> tuple[list[ParsedFile], list[RefusedInput]]:
    """Parse every file; return the parsed ones, and refuse those that cannot be read completely."""
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
    """Refuse a file if one of its sessions has the id of a different session of another file."""
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
    """Publish a file's conversations in order; each continues the session that it names, if any.

    A turn or session that the bus refuses (too large, an invalid id) is reported, and the rest is
    published.

    Args:
        bus: the bus to publish to.
        source: the parsed file.
        agent: the agent; None for the settings' default.
        user: the person; None for the speaker that the file names, else the settings' default.
        on_turn: called after each turn, published or refused.

    Raises:
        SpoolFull: the spool has reached its bound; what was published stays published.
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
        files: how many files were read completely.
        sessions: how many sessions they hold.
        turns: how many turns were published, including those that the log had already.
        events: how many events were read from files of events, including those that the log had.
        skipped: how many messages were left out because they have no content.
        new_events: by how many events the log grew meanwhile; None if Redis did not answer.
        level: ``logged`` if Redis has everything, else ``spooled``; None if no file could be read
            and so nothing was published.
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
