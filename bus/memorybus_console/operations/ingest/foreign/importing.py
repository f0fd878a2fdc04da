"""``memorybus ingest --from``: publishes what another memory system has exported or keeps."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import msgspec
from memorybus.agent.session_events import memory_write
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings, read_variable
from memorybus.errors import EventError, LogUnavailable
from memorybus.events import (
    AnyEvent,
    Envelope,
    Scope,
    SessionRef,
    SessionStarted,
    TurnCompleted,
    WriteAction,
)
from memorybus.ids import derived_id, text_digest
from memorybus.lineage.graph import Identity, identity_of
from memorybus.redis.keys import session_key, store_key
from memorybus.text.cleaning import check_id, clean_fields
from memorybus.text.redact import masked

from memorybus_console.operations.ingest.asked_history import (
    AskedHistory,
    KnownTurn,
    TurnMatch,
    replacing_rewind,
    replacing_rewind_id,
)
from memorybus_console.operations.ingest.files import count_logged, note_growth, publish_source
from memorybus_console.operations.ingest.foreign.records import (
    Export,
    ForeignError,
    ForeignMemory,
    ForeignMessage,
    ParsedExport,
)
from memorybus_console.operations.ingest.foreign.service import SOURCES, ForeignService, is_address
from memorybus_console.operations.ingest.foreign.sources import PARSERS
from memorybus_console.operations.ingest.reading.model import RecordedTurn
from memorybus_console.operations.ingest.report import (
    IngestReport,
    LeftOut,
    OnStage,
    RefusedInput,
    sum_reports,
)
from memorybus_console.operations.settings import scope_of

AGENTS = frozenset(("assistant", "agent", "ai"))
"""Names of speakers that count as agents in sources without roles."""

_MESSAGE_SEPARATOR = "\n\n"  # separates the messages of one side of a turn


class ImportOwner(msgspec.Struct, frozen=True):
    """The owner of imported memories.

    Attributes:
        user: the person for all memories; None for the person that the source names.
        user_from_name: whether a message of nobody whom the source identifies belongs to the person
            whom it names.
    """

    default: Scope  # the scope of memories for which the source names no owner
    agent: str | None = None  # the agent for all memories; None for the agent that the source names
    user: str | None = None
    user_from_name: bool = False

    def person(self, message: ForeignMessage) -> str:
        """Return the person of the source who wrote a message; "" if it is not known."""
        by_name = self.user_from_name and message.speaker == "user"
        return message.user or (message.name if by_name else "")

    def is_agent(self, person: str) -> bool:
        """Whether a person of the source is an agent: the given agent, or one of `AGENTS`."""
        return bool(person) and (person == self.agent or person in AGENTS)

    def scope(self, source: str, user: str, agent: str, workspace: str) -> Scope:
        """Return the scope for the person, agent and workspace of a source; "" is unknown.

        Raises:
            InvalidEvent: an id is not valid.
        """
        return Scope(
            agent=check_id("agent", self.agent or agent or self.default.agent),
            user=check_id("user", self.user or user or self.default.user),
            workspace=workspace or self.default.workspace,
            platform=source,
        )


class EnvelopedExport(msgspec.Struct):
    """Events in the order of their times, and the records of which no event could be made."""

    envelopes: list[Envelope] = []
    untimed: set[str] = set()  # the ids of those for which the source gives no time
    left_out: LeftOut = msgspec.field(default_factory=LeftOut)

    @property
    def refused(self) -> list[RefusedInput]:
        """The first records that are refused, and why."""
        return self.left_out.named


def build_envelopes(
    source: str, name: str, export: ParsedExport, owner: ImportOwner, at: int, now: int
) -> EnvelopedExport:
    """Return the events of a parsed export.

    Args:
        name: the file or the address, for messages about refused records.
        at: the time of records without one, milliseconds.
        now: the present, milliseconds: a memory that ends later is true and stays.
    """
    maker = _EnvelopeMaker(source, owner, at)
    done = EnvelopedExport(untimed=maker.untimed, left_out=export.left_out)
    for kept in export.memories:
        done.left_out.drop("ends in the future", (kept.until or 0) > now)
        try:
            done.envelopes += maker.memory_events(kept, now)
        except EventError as error:
            done.left_out.refuse(RefusedInput(f"{name}: {kept.id}", str(error)))
    for session, messages in _group_by_session(export.messages).items():
        try:
            done.envelopes += maker.session(session, messages)
        except EventError as error:
            done.left_out.refuse(RefusedInput(f"{name}: {session}", str(error)))
    done.envelopes.sort(key=lambda envelope: envelope.at)
    return done


@dataclass
class _EnvelopeMaker:
    """Makes the events of one source."""

    source: str
    owner: ImportOwner
    at: int
    untimed: set[str] = field(default_factory=set)

    def memory_events(self, kept: ForeignMemory, now: int) -> Iterator[Envelope]:
        """Yield the write of a memory, and its removal if it is no longer true."""
        kept = self._with_agent_owner(kept)
        scope = self.owner.scope(self.source, kept.user, kept.agent, kept.workspace)
        key = store_key(kept.store, scope)
        ref = _session_ref(self.source, kept.session or "memories")
        at = self.at if kept.at is None else kept.at
        provenance = _provenance_of(self.source, kept)
        action: WriteAction = "replace" if kept.replaces else "add"
        write = memory_write(action, kept.store, kept.text, kept.replaces, provenance)
        yield self._envelope(
            write, key, scope, ref, kept.at, "memory", kept.id, text_digest(kept.text)
        )
        if kept.until is not None and kept.until <= now:
            removal = memory_write("remove", kept.store, "", kept.text, provenance)
            yield self._envelope(removal, key, scope, ref, max(kept.until, at), "removal", kept.id)

    def _with_agent_owner(self, kept: ForeignMemory) -> ForeignMemory:
        """Return the memory, turned into the agent's own note if its person is an agent."""
        if not self.owner.is_agent(kept.user):
            return kept
        return msgspec.structs.replace(kept, user="", agent=kept.user, store="memory")

    def _with_agent_role(self, message: ForeignMessage) -> ForeignMessage:
        if not self.owner.is_agent(message.user):
            return message
        return msgspec.structs.replace(message, user="", agent=message.user, speaker="assistant")

    def session(self, session: str, messages: Sequence[ForeignMessage]) -> Iterator[Envelope]:
        """Yield a session's turns; in a shared session a turn belongs to the person who spoke."""
        messages = [self._with_agent_role(message) for message in messages]
        person = next(filter(None, map(self.owner.person, messages)), "")
        agent = next((message.agent for message in messages if message.agent), "")
        workspace = next((message.workspace for message in messages if message.workspace), "")
        counts: dict[Scope, int] = {}
        ref = _session_ref(self.source, session)
        for turn_messages in _group_by_turn(messages):
            user = self.owner.person(turn_messages[0]) or person
            scope = self.owner.scope(self.source, user, agent, workspace)
            key = session_key(scope, ref.root)
            at = next((message.at for message in turn_messages if message.at is not None), None)
            if scope not in counts:
                began = SessionStarted(platform=self.source)
                owner = (scope.agent, scope.user)
                yield self._envelope(began, key, scope, ref, at, "session", session, *owner)
            ordinal = counts[scope] = counts.get(scope, -1) + 1
            turn = _build_turn(turn_messages, ordinal)
            own = [text_digest(text) for text in (turn.user, turn.assistant)]
            own += [message.id for message in turn_messages]
            yield self._envelope(turn, key, scope, ref, at, "turn", *own)

    def _envelope(
        self,
        event: AnyEvent,
        key: str,
        scope: Scope,
        ref: SessionRef,
        at: int | None,
        *own: str,
    ) -> Envelope:
        event_id = derived_id("ingest", self.source, *own)
        if at is None:
            self.untimed.add(event_id)
        return Envelope(
            id=event_id,
            key=key,
            scope=scope,
            session=ref,
            at=self.at if at is None else at,
            v=event.version,
            event=event,
        )


def _session_ref(source: str, session: str) -> SessionRef:
    """Return a reference to a session whose name no session of an agent has."""
    name = check_id("session_id", f"{source}:{session}")
    return SessionRef(id=name, root=name)


def _provenance_of(source: str, kept: ForeignMemory) -> Mapping[str, str]:
    fields = {"origin": "import", "source": source, "source_id": kept.id, "kind": kept.kind}
    return {name: value for name, value in fields.items() if value}


def _group_by_session(messages: Iterable[ForeignMessage]) -> Mapping[str, Sequence[ForeignMessage]]:
    """Return messages by session, in the order of their times if all messages have one."""
    groups: dict[str, list[ForeignMessage]] = {}
    for message in messages:
        groups.setdefault(message.session, []).append(message)
    for group in groups.values():
        if all(message.at is not None for message in group):
            group.sort(key=lambda message: message.at or 0)
    return groups


def _group_by_turn(messages: Sequence[ForeignMessage]) -> Iterator[list[ForeignMessage]]:
    """Begin a turn at each message of a person; messages before the first are a turn, too."""
    group: list[ForeignMessage] = []
    for message in messages:
        if message.speaker == "user" and group:
            yield group
            group = []
        group.append(message)
    if group:
        yield group


def _build_turn(messages: Sequence[ForeignMessage], ordinal: int) -> TurnCompleted:
    names = {message.speaker: message.name for message in reversed(messages) if message.name}
    texts = {
        "user": _join_side(messages, "user"),
        "assistant": _join_side(messages, "assistant"),
        "user_name": names.get("user", ""),
        "assistant_name": names.get("assistant", ""),
        "source_id": messages[0].id,
    }
    return TurnCompleted(**clean_fields(texts), ordinal=ordinal)


def _join_side(messages: Sequence[ForeignMessage], speaker: str) -> str:
    return _MESSAGE_SEPARATOR.join(
        message.text for message in messages if message.speaker == speaker
    )


class NewForms(msgspec.Struct):
    """The events of an export that the history lacks; the counts are of turns."""

    envelopes: list[Envelope] = []
    known: int = 0
    replaced: int = 0


def select_new_forms(
    asked: AskedHistory, envelopes: Sequence[Envelope], untimed: Collection[str]
) -> NewForms:
    """Return the events of an export without the turns that the history has.

    Args:
        envelopes: the events of the export, in order.
        untimed: the ids of those for which the export gives no time.
    """
    sessions: dict[Identity, list[Envelope]] = {}
    for envelope in envelopes:
        if isinstance(envelope.event, TurnCompleted):
            sessions.setdefault(identity_of(envelope.scope, envelope.session.id), []).append(
                envelope
            )
    names = {identity.session for identity in sessions}
    matches: dict[str, TurnMatch] = {}
    for turns in sessions.values():
        recorded = [_recorded_turn(turn, timed=turn.id not in untimed) for turn in turns]
        scope, session = turns[0].scope, turns[0].session.id
        turn_matches = asked.match(scope, session, recorded, named=True, beside=names)
        matches |= {turn.id: match for turn, match in zip(turns, turn_matches, strict=True)}
    done = NewForms()
    for envelope in envelopes:
        _add(done, envelope, matches.get(envelope.id, TurnMatch("new")))
    return done


def _recorded_turn(envelope: Envelope, *, timed: bool) -> RecordedTurn:
    event = cast("TurnCompleted", envelope.event)
    at = envelope.at if timed else None
    return RecordedTurn(
        user=event.user, assistant=event.assistant, at=at, source_id=event.source_id
    )


def _add(done: NewForms, envelope: Envelope, match: TurnMatch) -> None:
    turn = match.known
    if turn is None:
        done.envelopes.append(envelope)
    elif match.verdict == "changed":
        done.envelopes += _newer_form(envelope, turn)
        done.replaced += 1
    else:
        unfinished = (turn.replaces, turn.id) if turn.unfinished else None
        done.envelopes += [_rewind(envelope, turn, *unfinished)] if unfinished else []
        done.known += 1


def _newer_form(envelope: Envelope, turn: KnownTurn) -> Iterator[Envelope]:
    """Yield a turn in the place of the known one, and the rewind that takes that one back."""
    event = msgspec.structs.replace(envelope.event, replaces=turn.id, ordinal=turn.ordinal)
    key = session_key(envelope.scope, turn.ref.root)
    yield msgspec.structs.replace(envelope, event=event, session=turn.ref, key=key)
    yield _rewind(envelope, turn, turn.id, envelope.id)


def _rewind(envelope: Envelope, turn: KnownTurn, older: str, newer: str) -> Envelope:
    event = replacing_rewind(turn.ref.id, older)
    return msgspec.structs.replace(
        envelope,
        id=replacing_rewind_id(older, newer),
        key=session_key(envelope.scope, turn.ref.root),
        session=turn.ref,
        v=event.version,
        event=event,
    )


def ingest_foreign(
    settings: Settings,
    source: str,
    names: Sequence[str],
    *,
    user: str | None,
    agent: str | None,
    user_from_name: bool = False,
    on_stage: OnStage,
) -> IngestReport:
    """Publish the memories of another system.

    A record that differs from its source's documented format is left out, and reported by name.

    Args:
        source: the other system; one of `foreign.sources.PARSERS`.
        names: its exported files, or the addresses of its service.
        user: the person for everything; None for the person that the source names.
        agent: the agent for everything; None for the agent that the source names.
        user_from_name: whether a message of nobody whom the source identifies belongs to the person
            whom it names.

    Raises:
        SpoolFull: the spool took nothing for a minute; what was published stays published.
        ArchiveUnavailable: the log's archive cannot say which events are new.
    """
    scope = scope_of(settings)
    owner = ImportOwner(scope, agent=agent, user=user, user_from_name=user_from_name)
    before = count_logged(settings)
    reports = [_ingest_one(settings, source, name, owner, on_stage) for name in names]
    return note_growth(settings, sum_reports(reports), before)


def _ingest_one(
    settings: Settings, source: str, name: str, owner: ImportOwner, on_stage: OnStage
) -> IngestReport:
    try:
        export, skipped = _read(settings, source, name, owner, on_stage)
    except ForeignError as error:
        return IngestReport(refused=(RefusedInput.unreadable(masked(name), error),))
    read = IngestReport(
        skipped=skipped,
        unread=export.left_out.unread,
        dropped=export.left_out.dropped,
        refused=tuple(export.refused),
    )
    try:
        news = _ask_history(settings, export, on_stage)
    except LogUnavailable as error:
        return sum_reports([read, IngestReport(refused=(RefusedInput(name, str(error)),))])
    count = len(news.envelopes)
    sent = publish_source(settings, name, news.envelopes, count, on_stage, export.untimed)
    others = len(export.envelopes) - sent.events if sent.files else 0
    counted = IngestReport(
        events=others, known=news.known, replaced=news.replaced, formats={source: sent.files}
    )
    return sum_reports([read, sent, counted])


def _ask_history(settings: Settings, export: EnvelopedExport, on_stage: OnStage) -> NewForms:
    scopes = {
        envelope.scope for envelope in export.envelopes if isinstance(envelope.event, TurnCompleted)
    }
    with AskedHistory() as asked:
        if scopes:
            asked.ask(settings, scopes, on_stage)
        return select_new_forms(asked, export.envelopes, export.untimed)


def _read(
    settings: Settings, source: str, name: str, owner: ImportOwner, on_stage: OnStage
) -> tuple[EnvelopedExport, int]:
    """Return the events of a source, and how many of its records were left out.

    Records without a time have that of the file, or the present.
    """
    now = SYSTEM.now_ms()
    if is_address(name):
        at, data = now, _fetch(source, name, on_stage)
    else:
        at, data = _read_file(Path(name))
    export = PARSERS[source](Export(data, name, settings.zone))
    return build_envelopes(source, name, export, owner, at, now), export.skipped


def _read_file(path: Path) -> tuple[int, bytes]:
    try:
        return path.stat().st_mtime_ns // 1_000_000, path.read_bytes()
    except OSError as error:
        raise ForeignError(error.strerror or str(error), str(path)) from error


def _fetch(source: str, address: str, on_stage: OnStage) -> bytes:
    """Return the pages of a source's running service, one on each line."""
    live = SOURCES.get(source)
    if live is None:
        raise ForeignError(f"{source} is imported from files; services: {', '.join(SOURCES)}")
    service = ForeignService(address, live.headers(read_variable(live.key) if live.key else ""))
    lines = []
    with on_stage("read", "pages", None) as step:
        for page in live.pages(service):
            step()
            lines.append(msgspec.json.encode(page))
    return b"\n".join(lines) or b"[]"
