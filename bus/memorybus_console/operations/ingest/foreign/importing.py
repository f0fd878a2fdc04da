"""``memorybus ingest --from``: publishes what another memory system has exported or keeps."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import cast

import msgspec
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings, read_variable
from memorybus.errors import LogUnavailable
from memorybus.events import Envelope, Scope, TurnCompleted
from memorybus.lineage.identity import Identity, identity_of
from memorybus.redis.keys import session_key
from memorybus.text.redact import masked

from memorybus_console.operations.ingest.asked_history import AskedHistory
from memorybus_console.operations.ingest.files import count_logged, note_growth, publish_source
from memorybus_console.operations.ingest.foreign.enveloping import (
    EnvelopedExport,
    ImportOwner,
    build_envelopes,
)
from memorybus_console.operations.ingest.foreign.records import Export, ForeignError
from memorybus_console.operations.ingest.foreign.service import SOURCES, ForeignService, is_address
from memorybus_console.operations.ingest.foreign.sources import PARSERS
from memorybus_console.operations.ingest.reading.model import RecordedTurn
from memorybus_console.operations.ingest.report import (
    IngestReport,
    OnStage,
    RefusedInput,
    sum_reports,
)
from memorybus_console.operations.ingest.turn_matching import (
    KnownTurn,
    TurnMatch,
    replacing_rewind,
    replacing_rewind_id,
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
    scope = Scope(agent=settings.agent, user=settings.user, workspace=settings.workspace)
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
