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
        asked: what the history has.
        envelopes: the events of the export, in order.
        untimed: the ids of those for which the export gives no time.
    """
    sessions: dict[Identity, list[Envelope]] = {}
    for one in envelopes:
        if isinstance(one.event, TurnCompleted):
            sessions.setdefault(identity_of(one.scope, one.session.id), []).append(one)
    names = {identity.session for identity in sessions}
    matches: dict[str, TurnMatch] = {}
    for turns in sessions.values():
        recorded = [_recorded_turn(one, timed=one.id not in untimed) for one in turns]
        scope, session = turns[0].scope, turns[0].session.id
        found = asked.match(scope, session, recorded, named=True, beside=names)
        matches |= {one.id: match for one, match in zip(turns, found, strict=True)}
    done = NewForms()
    for one in envelopes:
        _add(done, one, matches.get(one.id, TurnMatch("new")))
    return done


def _recorded_turn(envelope: Envelope, *, timed: bool) -> RecordedTurn:
    event = cast("TurnCompleted", envelope.event)
    at = envelope.at if timed else None
    return RecordedTurn(
        user=event.user, assistant=event.assistant, at=at, source_id=event.source_id
    )


def _add(done: NewForms, envelope: Envelope, match: TurnMatch) -> None:
    known = match.known
    if known is None:
        done.envelopes.append(envelope)
    elif match.verdict == "changed":
        done.envelopes += _newer_form(envelope, known)
        done.replaced += 1
    else:
        unfinished = (known.replaces, known.id) if known.unfinished else None
        done.envelopes += [_rewind(envelope, known, *unfinished)] if unfinished else []
        done.known += 1


def _newer_form(envelope: Envelope, known: KnownTurn) -> Iterator[Envelope]:
    """Yield a turn in the place of the known one, and the rewind that takes that one back."""
    event = msgspec.structs.replace(envelope.event, replaces=known.id, ordinal=known.ordinal)
    key = session_key(envelope.scope, known.ref.root)
    yield msgspec.structs.replace(envelope, event=event, session=known.ref, key=key)
    yield _rewind(envelope, known, known.id, envelope.id)


def _rewind(envelope: Envelope, known: KnownTurn, older: str, newer: str) -> Envelope:
    event = replacing_rewind(known.ref.id, older)
    return msgspec.structs.replace(
        envelope,
        id=replacing_rewind_id(older, newer),
        key=session_key(envelope.scope, known.ref.root),
        session=known.ref,
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
        on_stage: called for each stage.

    Raises:
        SpoolFull: the spool took nothing for a minute; what was published stays published.
        ArchiveUnavailable: the log's archive cannot say which events are new.
        MemoryBusError: Redis answers, but must not be used as it is.
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
        found, skipped = _read(settings, source, name, owner, on_stage)
    except ForeignError as error:
        return IngestReport(refused=(RefusedInput.unreadable(masked(name), error),))
    read = IngestReport(
        skipped=skipped,
        unread=found.left_out.unread,
        dropped=found.left_out.dropped,
        refused=tuple(found.refused),
    )
    try:
        news = _ask_history(settings, found, on_stage)
    except LogUnavailable as error:
        return sum_reports([read, IngestReport(refused=(RefusedInput(name, str(error)),))])
    count = len(news.envelopes)
    sent = publish_source(settings, name, news.envelopes, count, on_stage, found.untimed)
    others = len(found.envelopes) - sent.events if sent.files else 0
    counted = IngestReport(
        events=others, known=news.known, replaced=news.replaced, formats={source: sent.files}
    )
    return sum_reports([read, sent, counted])


def _ask_history(settings: Settings, found: EnvelopedExport, on_stage: OnStage) -> NewForms:
    """Return what the history lacks of an export.

    Raises:
        LogUnavailable: Redis does not answer.
        ArchiveError: the archive cannot say what it has.
    """
    scopes = {one.scope for one in found.envelopes if isinstance(one.event, TurnCompleted)}
    with AskedHistory() as asked:
        if scopes:
            asked.ask(settings, scopes, on_stage)
        return select_new_forms(asked, found.envelopes, found.untimed)


def _read(
    settings: Settings, source: str, name: str, owner: ImportOwner, on_stage: OnStage
) -> tuple[EnvelopedExport, int]:
    """Return the events of a source, and how many of its records were left out.

    Records without a time have that of the file, or the present.

    Raises:
        ForeignError: it cannot be read, or does not answer as documented.
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
