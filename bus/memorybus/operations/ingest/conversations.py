"""Publishes recorded conversations: the events that an agent would have published live.

Every turn is published with its ordinal and a time that does not change between runs, so that its
event id and payload are the same each time: a second ingest of a file adds nothing (G2).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.config.settings import Settings
from memorybus.errors import EventError
from memorybus.operations.ingest.refused import RefusedInput
from memorybus.operations.ingest.report import IngestReport, sum_reports
from memorybus.operations.ingest.stages import OnStage
from memorybus.operations.ingest.transcripts import (
    ReadingOptions,
    RecordedSession,
    Transcript,
    TranscriptError,
    read_transcript,
)

PLATFORM = "ingest"

_DEFAULT_OPTIONS = ReadingOptions()

_FLUSH_STEP = 0.5
"""Seconds between two counts of the events that Redis has not taken yet."""

_MAX_STEPS_WITHOUT_REDIS = 20
"""After so many steps without Redis the remaining events are reported as spooled (G10)."""


class ParsedFile(msgspec.Struct, frozen=True):
    """A parsed file. Its modification time stands for times that it does not give."""

    path: Path
    transcript: Transcript
    modified_ms: int


def load_files(
    paths: Iterable[Path], options: ReadingOptions = _DEFAULT_OPTIONS
) -> tuple[list[ParsedFile], list[RefusedInput]]:
    """Parse every file; return the parsed ones, and refuse those of which nothing can be read."""
    sources: list[ParsedFile] = []
    refused: list[RefusedInput] = []
    for path in paths:
        try:
            found = ParsedFile(
                path, read_transcript(path, options), path.stat().st_mtime_ns // 1_000_000
            )
            _check_no_shared_session(found, sources)
            sources.append(found)
        except TranscriptError as error:
            refused.append(RefusedInput.unreadable(str(path), error))
    return sources, refused


def _check_no_shared_session(found: ParsedFile, earlier: Iterable[ParsedFile]) -> None:
    """Refuse a file if a session id made of its name is that of a different session elsewhere.

    A session that the file itself names may be spread over several files.
    """
    known = {c.session: (source, c) for source in earlier for c in source.transcript.conversations}
    for conversation in found.transcript.conversations:
        source, other = known.get(conversation.session, (found, conversation))
        same = other == msgspec.structs.replace(conversation, named=other.named)
        if not same and not conversation.named:
            raise TranscriptError(
                f"its session {conversation.session!r} would mix with that of {source.path}; "
                f"rename one of the files",
                str(found.path),
            )


def ingest_conversations(
    settings: Settings,
    sources: Sequence[ParsedFile],
    *,
    user: str | None,
    agent: str | None,
    reachable: bool,
    on_stage: OnStage,
) -> IngestReport:
    """Publish the conversations of files, and wait until Redis has them.

    Args:
        settings: the settings of the log.
        sources: the parsed files.
        user: the person; see `publish_file`.
        agent: the agent; see `publish_file`.
        reachable: whether Redis answers; if not, nothing waits for it.
        on_stage: called when publishing begins, and when waiting begins.

    Raises:
        SpoolFull: the spool has reached its bound; what was published stays published.
    """
    turns = sum(source.transcript.turns for source in sources)
    with MemoryBus.connect(settings) as bus:
        with on_stage("publish", "turns", turns) as step:
            done = sum_reports(
                [publish_file(bus, one, agent=agent, user=user, on_turn=step) for one in sources]
            )
        logged = reachable and _wait_until_logged(bus, on_stage)
    return msgspec.structs.replace(done, level="logged" if logged else "spooled")


def _wait_until_logged(bus: MemoryBus, on_stage: OnStage) -> bool:
    """Wait while events are being sent; return False after `_MAX_STEPS_WITHOUT_REDIS`.

    It is shown as a stage only if it takes longer than a step: usually all events are sent before
    the last turns are published.
    """
    if bus.flush("logged", timeout=_FLUSH_STEP):
        return True
    left, idle = bus.unsent, 0
    with on_stage("send to Redis", "events", left) as step:
        while idle < _MAX_STEPS_WITHOUT_REDIS:
            logged = bus.flush("logged", timeout=_FLUSH_STEP)
            unsent = bus.unsent
            step(left - unsent)
            left = unsent
            if logged:
                return True
            idle = idle + 1 if bus.problem else 0
    return False


def publish_file(
    bus: MemoryBus,
    source: ParsedFile,
    *,
    agent: str | None,
    user: str | None,
    on_turn: Callable[[], None],
) -> IngestReport:
    """Publish a file's conversations in order; each continues the session that it names, if any.

    A turn or session that the bus refuses (too large, an invalid id) is reported, and the rest is
    published.

    Args:
        bus: the bus to publish to.
        source: the parsed file.
        agent: the agent; None for the settings' default.
        user: the person; None for the speaker that the file names, or else the settings' default.
        on_turn: called after each turn, published or refused.

    Raises:
        SpoolFull: the spool has reached its bound; what was published stays published.
    """
    sessions: dict[tuple[str, str], Session] = {}
    turns = 0
    left_out = source.transcript.left_out
    refused = list(left_out.named)
    for conversation in source.transcript.conversations:
        try:
            session = _open_session(bus, conversation, sessions, agent, user, source.modified_ms)
        except EventError as error:
            refused.append(RefusedInput(f"{source.path}: {conversation.session}", str(error)))
            continue
        sessions[conversation.session, conversation.user] = session
        for refusal in _publish_turns(session, conversation, source):
            on_turn()
            if refusal is None:
                turns += 1
            else:
                refused.append(refusal)
    return IngestReport(
        files=1,
        sessions=len(source.transcript.conversations),
        turns=turns,
        skipped=source.transcript.skipped,
        unread=left_out.unread,
        dropped=left_out.dropped,
        refused=tuple(refused),
    )


def _open_session(
    bus: MemoryBus,
    conversation: RecordedSession,
    sessions: Mapping[tuple[str, str], Session],
    agent: str | None,
    user: str | None,
    modified_ms: int,
) -> Session:
    at = conversation.at or modified_ms
    before = sessions.get((conversation.after, conversation.user))
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
