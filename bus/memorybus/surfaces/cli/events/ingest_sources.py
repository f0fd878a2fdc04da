"""Ingest with a progress bar: parse every file, publish its events, wait until Redis has them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from rich.progress import Progress

from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings, read_variable
from memorybus.errors import AccessDenied, LogUnavailable
from memorybus.events import Envelope, Scope
from memorybus.log.stream import EventLog
from memorybus.operations.ingest import conversations, event_lines
from memorybus.operations.ingest.conversations import IngestReport, ParsedFile, RefusedInput
from memorybus.operations.ingest.foreign.enveloping import EnvelopedExport, ImportOwner
from memorybus.operations.ingest.foreign.live import SOURCES
from memorybus.operations.ingest.foreign.model import ForeignError
from memorybus.operations.ingest.foreign.service import is_address
from memorybus.operations.ingest.foreign.sources import read_address, read_file
from memorybus.operations.ingest.new_events import ImportResult, publish_new
from memorybus.operations.ingest.transcripts import TranscriptError
from memorybus.redis.connect import connect_redis
from memorybus.surfaces.cli.progress import note_on_interrupt
from memorybus.surfaces.views.output import Output
from memorybus.text.redact import masked

FLUSH_STEP = 0.5
PATIENCE = 20
"""After so many steps without Redis the remaining events are reported as spooled (G10)."""

_INTERRUPTED = "interrupted: what was published stays; the same command publishes the rest"
_OWNERS_IN_FILE = "its events name their user and agent; leave out --user and --agent"


def ingest_all(
    settings: Settings,
    files: Sequence[Path],
    user: str | None,
    agent: str | None,
    output: Output,
) -> IngestReport:
    """Publish every file that can be read whole.

    Raises:
        SpoolFull: the spool's bound is reached; what was published stays published.
    """
    exports = [path for path in files if event_lines.holds_events(path)]
    sources, refused = conversations.load_files(path for path in files if path not in exports)
    if not sources and not exports:
        return IngestReport(refused=tuple(refused))
    before = events_in_log(settings)
    done = IngestReport(level="logged", refused=tuple(refused))
    if sources:
        logged = before is not None
        done = _ingest_conversations(settings, sources, user, agent, output, done, reachable=logged)
    for path in exports:
        done = _ingest_events(settings, path, output, done, named=bool(user or agent))
    return _with_growth(settings, done, before)


def _ingest_conversations(
    settings: Settings,
    sources: Sequence[ParsedFile],
    user: str | None,
    agent: str | None,
    output: Output,
    report: IngestReport,
    *,
    reachable: bool,
) -> IngestReport:
    turns, refused = 0, list(report.refused)
    with output.progress("turns") as bar, MemoryBus.connect(settings) as bus:
        task = bar.add_task("publish", total=sum(source.transcript.turns for source in sources))
        for source in sources:
            done = conversations.publish_file(
                bus, source, agent=agent, user=user, on_turn=lambda: bar.advance(task)
            )
            turns += done.turns
            refused += done.refused
        logged = reachable and _wait_logged(bus, bar)
    return msgspec.structs.replace(
        report,
        files=len(sources),
        sessions=sum(len(source.transcript.conversations) for source in sources),
        turns=turns,
        skipped=sum(source.transcript.skipped for source in sources),
        level="logged" if logged else "spooled",
        refused=tuple(refused),
    )


def _ingest_events(
    settings: Settings, path: Path, output: Output, report: IngestReport, *, named: bool
) -> IngestReport:
    """Publish a file of events, if all of it can be read, and add it to the report."""
    if named:
        return _with_refused(report, [RefusedInput(str(path), _OWNERS_IN_FILE)])
    try:
        with output.progress("events") as bar:
            read = bar.add_task("read", total=None)
            count = sum(1 for _ in bar.track(event_lines.events_of(path), task_id=read))
    except TranscriptError as error:
        return _with_refused(report, [RefusedInput(str(path), str(error))])
    return _publish(settings, str(path), event_lines.events_of(path), count, output, report)


def ingest_from(
    settings: Settings,
    source: str,
    names: Sequence[str],
    user: str | None,
    agent: str | None,
    output: Output,
) -> IngestReport:
    """Publish what another memory holds, read from its exported files or from its service.

    A record that differs from its source's documented format is left out, and reported by name.
    """
    scope = Scope(agent=settings.agent, user=settings.user, workspace=settings.workspace)
    owner = ImportOwner(scope, agent=agent, user=user)
    before = events_in_log(settings)
    report = IngestReport(level="logged")
    for name in names:
        try:
            found, skipped = _read_foreign(source, name, owner, output)
        except ForeignError as error:
            report = _with_refused(report, [RefusedInput(masked(name), str(error))])
            continue
        report = msgspec.structs.replace(report, skipped=report.skipped + skipped)
        report = _with_refused(report, found.refused)
        count = len(found.envelopes)
        report = _publish(settings, name, found.envelopes, count, output, report)
    return _with_growth(settings, report, before)


def _read_foreign(
    source: str, name: str, owner: ImportOwner, output: Output
) -> tuple[EnvelopedExport, int]:
    if not is_address(name):
        return read_file(source, Path(name), owner)
    known = SOURCES.get(source)
    key = read_variable(known.key) if known and known.key else ""
    with output.progress("pages") as bar:
        task = bar.add_task("read", total=None)
        return read_address(source, name, key, owner, SYSTEM.now_ms(), lambda: bar.advance(task))


def _publish(
    settings: Settings,
    name: str,
    envelopes: Iterable[Envelope],
    count: int,
    output: Output,
    report: IngestReport,
) -> IngestReport:
    """Publish those events of a file that are new to the log, and add them to the report."""
    try:
        with note_on_interrupt(output, _INTERRUPTED), output.progress("events") as bar:
            task = bar.add_task("publish", total=count)
            done = publish_new(settings, envelopes, lambda: bar.advance(task), execute=True)
    except (TranscriptError, LogUnavailable) as error:
        return _with_refused(report, [RefusedInput(name, str(error))])
    report = msgspec.structs.replace(
        report,
        files=report.files + 1,
        events=report.events + done.events,
        level=report.level if done.logged else "spooled",
    )
    return _with_refused(report, _refused_events(name, done))


def _refused_events(name: str, done: ImportResult) -> list[RefusedInput]:
    named = [RefusedInput(f"{name}: event {known}", why) for known, why in done.refused.items()]
    unnamed = done.refused_events - len(named)
    more = [RefusedInput(name, f"{unnamed} more events were refused")] if unnamed else []
    return named + more


def _with_refused(report: IngestReport, refused: Sequence[RefusedInput]) -> IngestReport:
    return msgspec.structs.replace(report, refused=(*report.refused, *refused))


def events_in_log(settings: Settings) -> int | None:
    """Return how many events the log has ever taken, or None if Redis does not answer.

    Raises:
        MemoryBusError: Redis answers, but must not be used as it is.
    """
    log = EventLog(connect_redis(settings), settings)
    try:
        log.open()
        return sum(head.n for head in log.heads())
    except AccessDenied:
        raise
    except LogUnavailable:
        return None


def _wait_logged(bus: MemoryBus, bar: Progress) -> bool:
    """Wait while events are being sent; return False after `PATIENCE` steps without Redis."""
    bar.add_task("send to Redis", total=None)
    idle = 0
    while idle < PATIENCE:
        if bus.flush("logged", timeout=FLUSH_STEP):
            return True
        idle = idle + 1 if bus.problem else 0
    return False


def _with_growth(settings: Settings, report: IngestReport, before: int | None) -> IngestReport:
    """Return the report with the number of events by which the log has grown."""
    if not report.files:
        return msgspec.structs.replace(report, level=None)
    after = events_in_log(settings) if report.level == "logged" else None
    known = before is not None and after is not None
    grown = (after or 0) - (before or 0) if known else None
    return msgspec.structs.replace(report, new_events=grown)
