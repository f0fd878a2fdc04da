"""Publishes recorded conversations: the events that an agent would have published live.

The history is asked which turns it has, in which form, and whose were forgotten: a second ingest of
a file adds nothing, however it was cut, grown or renamed since (G2). A turn that grew is published
with the event that it replaces, and a rewind takes that one back.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.config.settings import Settings
from memorybus.errors import EventError, LogUnavailable, MemoryBusError
from memorybus.events import Scope
from memorybus.history.forgotten import turn_row
from memorybus.ids import derived_id
from memorybus.lineage.graph import identity_of
from memorybus.text.cleaning import check_id

from memorybus_console.operations.ingest.asked_history import (
    AskedHistory,
    KnownTurn,
    TurnMarks,
    TurnMatch,
    marks_of_recorded,
    replacing_rewind,
    replacing_rewind_id,
)
from memorybus_console.operations.ingest.reading.model import (
    ReadingOptions,
    RecordedSession,
    RecordedTurn,
    Transcript,
    TranscriptError,
)
from memorybus_console.operations.ingest.reading.transcripts import read_transcript
from memorybus_console.operations.ingest.report import (
    IngestReport,
    OnStage,
    RefusedInput,
    sum_reports,
)

PLATFORM = "ingest"

_DEFAULT_OPTIONS = ReadingOptions()

_FLUSH_STEP = 0.5  # seconds between two counts of the events that Redis has not taken yet

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
            file = ParsedFile(
                path, read_transcript(path, options), path.stat().st_mtime_ns // 1_000_000
            )
            _check_no_shared_session(file, sources)
            sources.append(file)
        except TranscriptError as error:
            refused.append(RefusedInput.unreadable(str(path), error))
    return sources, refused


def _check_no_shared_session(file: ParsedFile, earlier: Iterable[ParsedFile]) -> None:
    """Refuse a file if a session id made of its name is that of a different session elsewhere.

    A session that the file itself names may be spread over several files.
    """
    earlier_sessions = {
        c.session: (source, c) for source in earlier for c in source.transcript.conversations
    }
    for conversation in file.transcript.conversations:
        source, other = earlier_sessions.get(conversation.session, (file, conversation))
        same = other == msgspec.structs.replace(conversation, named=other.named)
        if not same and not conversation.named:
            raise TranscriptError(
                f"its session {conversation.session!r} would mix with that of {source.path}; "
                f"rename one of the files",
                str(file.path),
            )


def ingest_conversations(
    settings: Settings,
    sources: Sequence[ParsedFile],
    *,
    user: str | None,
    agent: str | None,
    on_stage: OnStage,
) -> IngestReport:
    """Publish what the history lacks of the conversations of files, and wait until Redis has it.

    Without Redis every file is refused: what the history has and who was forgotten is unknown then.

    Args:
        user: the person; see `publish_file`.
        agent: the agent; see `publish_file`.
        on_stage: called when publishing begins, and when waiting begins.

    Raises:
        ArchiveError: the archive does not show what the history has.
        SpoolFull: the spool has reached its bound; what was published stays published.
    """
    turns = sum(source.transcript.turns for source in sources)
    with AskedHistory() as asked:
        try:
            asked.ask(settings, _scopes_of(settings, sources, agent, user), on_stage)
        except LogUnavailable as error:
            refused = [RefusedInput(str(source.path), str(error)) for source in sources]
            return IngestReport(refused=tuple(refused))
        with MemoryBus.connect(settings) as bus:
            with on_stage("publish", "turns", turns) as step:
                publisher = FilePublisher(bus, asked, agent=agent, user=user, on_turn=step)
                done = sum_reports([publisher.publish(source) for source in sources])
            logged = _wait_until_logged(bus, on_stage)
    return msgspec.structs.replace(done, level="logged" if logged else "spooled")


def _scopes_of(
    settings: Settings, sources: Iterable[ParsedFile], agent: str | None, user: str | None
) -> set[Scope]:
    every = {
        conversation.user for source in sources for conversation in source.transcript.conversations
    }
    scopes = set()
    for speaker in every:
        with contextlib.suppress(EventError):  # publishing reports it
            scopes.add(scope_of(settings, agent, user, speaker))
    return scopes


def scope_of(settings: Settings, agent: str | None, user: str | None, speaker: str) -> Scope:
    """Return the owner of a recorded conversation.

    Args:
        speaker: the person that the file names; "" if it names none.

    Raises:
        InvalidEvent: an id is not valid.
    """
    return Scope(
        agent=check_id("agent", settings.agent if agent is None else agent),
        user=check_id("user", user or speaker or settings.user),
        workspace=settings.workspace,
        platform=PLATFORM,
    )


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


@dataclass
class FilePublisher:
    """Publishes the conversations of files, each turn of which the history lacks.

    Args:
        agent: the agent; None for the settings' default.
        user: the person; None for the speaker that a file names, or else the settings' default.
    """

    bus: MemoryBus
    asked: AskedHistory
    agent: str | None
    user: str | None
    on_turn: Callable[[], None]

    def publish(self, source: ParsedFile) -> IngestReport:
        """Publish a file's conversations in order; each may continue another one.

        A turn or session that the bus refuses (too large, an invalid id) is reported, and so is
        what was forgotten; the rest is published.

        Raises:
            SpoolFull: the spool has reached its bound; what was published stays published.
        """
        sessions: dict[tuple[str, str], Session] = {}
        conversations = source.transcript.conversations
        names = [conversation.session for conversation in conversations]
        reports = [_report_of_reading(source.transcript)]
        for conversation in conversations:
            reports.append(IngestReport(sessions=1))
            try:
                scope = scope_of(self.bus.settings, self.agent, self.user, conversation.user)
                opened = _OpenedSession(self.bus, self.asked, source, conversation, scope)
                opened.before = sessions.get((conversation.after, conversation.user))
                reports += self._publish_turns(opened, names)
            except EventError as error:
                refusal = RefusedInput(f"{source.path}: {conversation.session}", str(error))
                reports.append(IngestReport(refused=(refusal,)))
            else:
                own = (conversation.session, conversation.user)
                sessions |= {own: opened.last} if opened.last else {}
        return sum_reports(reports)

    def _publish_turns(
        self, opened: "_OpenedSession", names: Sequence[str]
    ) -> Iterator[IngestReport]:
        """Publish the turns of a session that the history lacks; yield what became of each."""
        kept, forgotten = opened.sort_out_forgotten()
        for why, count in forgotten.items():
            refusal = RefusedInput(f"{opened.where}: {count} turns", why)
            yield IngestReport(refused=(refusal,), refused_turns=count)
            for _ in range(count):
                self.on_turn()
        turns = [turn for _, turn in kept]
        matches = opened.match(turns, names)
        for (number, turn), match in zip(kept, matches, strict=True):
            self.on_turn()
            try:
                yield opened.publish(turn, match)
            except TurnRefused as error:
                refusal = RefusedInput(f"{opened.where}: turn {number}", str(error))
                yield IngestReport(refused=(refusal,), refused_turns=1)


def _report_of_reading(transcript: Transcript) -> IngestReport:
    return IngestReport(
        files=1,
        formats=dict.fromkeys(transcript.formats, 1),
        skipped=transcript.skipped,
        unread=transcript.left_out.unread,
        dropped=transcript.left_out.dropped,
        refused=tuple(transcript.left_out.named),
    )


class TurnRefused(MemoryBusError):
    """The bus refuses one turn, and takes the others of its session."""


@dataclass
class _OpenedSession:
    """Publishes one conversation; its session begins with the first turn that is published.

    Attributes:
        last: the session to which a turn belonged last; None before the first one.
    """

    bus: MemoryBus
    asked: AskedHistory
    source: ParsedFile
    conversation: RecordedSession
    scope: Scope
    forms: Counter[TurnMarks] = field(default_factory=Counter)
    ordinals: dict[str, int] = field(default_factory=dict)
    before: Session | None = None
    last: Session | None = None

    @property
    def where(self) -> str:
        """Its file and its id, for messages."""
        return f"{self.source.path}: {self.conversation.session}"

    def sort_out_forgotten(self) -> tuple[list[tuple[int, RecordedTurn]], Counter[str]]:
        """Return the turns that may be published, with their numbers from 1, and why others not."""
        kept, forgotten = [], Counter[str]()
        for number, turn in enumerate(self.conversation.turns, 1):
            why = self._why_forgotten(turn)
            forgotten[why] += 1
            if not why:
                kept.append((number, turn))
        del forgotten[""]
        return kept, forgotten

    def _why_forgotten(self, turn: RecordedTurn) -> str:
        at = turn.at or self.conversation.at
        row = turn_row(self.scope, self.conversation.session, at or 0)
        return self.asked.forgotten.why(row, timed=at is not None)

    def match(self, turns: Sequence[RecordedTurn], names: Sequence[str]) -> list[TurnMatch]:
        """Return what the history knows of some turns; `names` are the file's sessions."""
        name, named = self.conversation.session, self.conversation.named
        matches = self.asked.match(self.scope, name, turns, named=named, beside=names)
        ref = next((match.known.ref for match in matches if match.known), None)
        ref = ref or self.asked.ref(self.scope, name)
        self.last = Session(self.bus, self.scope, ref) if ref else None
        return matches

    def publish(self, turn: RecordedTurn, match: TurnMatch) -> IngestReport:
        """Publish a turn if the history lacks it, or lacks this form of it.

        Raises:
            InvalidEvent: the session's id is not valid.
            TurnRefused: the turn is too large, or cannot be encoded.
            SpoolFull: the spool has reached its bound.
        """
        event_id, known_turn = self._event_id(turn), match.known
        if known_turn is None:
            session = self._open()
            self._publish_turn(session, turn, event_id, self._next_ordinal(session.id))
            return IngestReport(turns=1)
        session = self.last = Session(self.bus, self.scope, known_turn.ref)
        if match.verdict == "changed":
            self._publish_turn(session, turn, event_id, known_turn.ordinal, known_turn)
            _retract(session, known_turn.id, event_id, self._time(turn, known_turn))
            return IngestReport(turns=1, replaced=1)
        if known_turn.unfinished:
            _retract(session, known_turn.replaces, known_turn.id, self._time(turn, known_turn))
        return IngestReport(turns=1, known=1)

    def _open(self) -> Session:
        """Return the session to which the next turn belongs, and begin it if it is new."""
        conversation, at = self.conversation, self.conversation.at or self.source.modified_ms
        if self.last is None and self.before is not None:
            self.last = self.before.switched_to(conversation.session, reason="resume", at=at)
        self.last = self.last or self.bus.session(
            conversation.session,
            agent=self.scope.agent,
            user=self.scope.user,
            platform=PLATFORM,
            title=conversation.title,
            warm=False,
            at=at,
        )
        return self.last

    def _next_ordinal(self, session: str) -> int:
        ordinal = self.ordinals.get(session)
        ordinal = self.asked.next_ordinal(self.scope, session) if ordinal is None else ordinal
        self.ordinals[session] = ordinal + 1
        return ordinal

    def _event_id(self, turn: RecordedTurn) -> str:
        """Return the turn's event id: any run derives the same one, also beside another (G2)."""
        marks = marks_of_recorded(turn)
        self.forms[marks] += 1
        second = "" if marks.second is None else marks.second
        form = (marks.source, second, marks.words.hex(), marks.answer.hex(), self.forms[marks])
        identity = identity_of(self.scope, self.conversation.session)
        return derived_id("ingest", *identity, *form)

    def _publish_turn(
        self,
        session: Session,
        turn: RecordedTurn,
        event_id: str,
        ordinal: int,
        known_turn: KnownTurn | None = None,
    ) -> None:
        try:
            session.turn_completed(
                turn.user,
                turn.assistant,
                messages=turn.messages,
                ordinal=ordinal,
                event_id=event_id,
                user_name=turn.user_name,
                assistant_name=turn.assistant_name,
                source_id=turn.source_id,
                replaces=known_turn.id if known_turn else "",
                at=self._time(turn, known_turn),
            )
        except EventError as error:
            raise TurnRefused(str(error)) from error

    def _time(self, turn: RecordedTurn, known_turn: KnownTurn | None = None) -> int:
        """Return when a turn was said; another form of it was said at the same time."""
        at = turn.at or self.conversation.at
        return at or (known_turn.at if known_turn else self.source.modified_ms)


def _retract(session: Session, older: str, newer: str, at: int) -> None:
    """Take an older form of a turn back."""
    session.publish(replacing_rewind(session.id, older), replacing_rewind_id(older, newer), at)
