"""``memorybus ingest --from``: publishes what another memory system has exported or keeps."""

from collections.abc import Sequence
from pathlib import Path

from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings, read_variable
from memorybus.errors import LogUnavailable
from memorybus.events import Scope, TurnCompleted
from memorybus.text.redact import masked

from memorybus_console.operations.ingest.asked_history import AskedHistory
from memorybus_console.operations.ingest.foreign.enveloping import EnvelopedExport, ImportOwner
from memorybus_console.operations.ingest.foreign.live import SOURCES
from memorybus_console.operations.ingest.foreign.model import ForeignError
from memorybus_console.operations.ingest.foreign.service import is_address
from memorybus_console.operations.ingest.foreign.sources import read_address, read_file
from memorybus_console.operations.ingest.foreign_turns import NewForms, select_new_forms
from memorybus_console.operations.ingest.log_growth import count_logged, note_growth
from memorybus_console.operations.ingest.refused import RefusedInput
from memorybus_console.operations.ingest.report import IngestReport, sum_reports
from memorybus_console.operations.ingest.source_events import publish_source
from memorybus_console.operations.ingest.stages import OnStage


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
    counted = IngestReport(events=others, known=news.known, replaced=news.replaced)
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
    if not is_address(name):
        return read_file(source, Path(name), owner, SYSTEM.now_ms(), settings.zone)
    known = SOURCES.get(source)
    key = read_variable(known.key) if known and known.key else ""
    with on_stage("read", "pages", None) as step:
        return read_address(source, name, key, owner, SYSTEM.now_ms(), settings.zone, step)
