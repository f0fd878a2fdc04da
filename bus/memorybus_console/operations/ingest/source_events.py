"""Publishes the events of one source (a file or another memory system), and reports them."""

from collections.abc import Collection, Iterable

from memorybus.config.settings import Settings
from memorybus.errors import LogUnavailable
from memorybus.events import Envelope

from memorybus_console.operations.ingest.new_events import ImportResult, publish_new
from memorybus_console.operations.ingest.refused import RefusedInput
from memorybus_console.operations.ingest.report import IngestReport
from memorybus_console.operations.ingest.stages import OnStage
from memorybus_console.operations.ingest.transcripts import TranscriptError


def publish_source(
    settings: Settings,
    name: str,
    envelopes: Iterable[Envelope],
    count: int,
    on_stage: OnStage,
    untimed: Collection[str] = (),
) -> IngestReport:
    """Publish those events of a source that are new to the log.

    Args:
        name: the file or the address.
        envelopes: the source's events.
        count: how many events these are.
        on_stage: called once, when publishing begins.
        untimed: the ids of events whose time is only that of the source.

    Raises:
        ArchiveUnavailable: the log's archive cannot say which events are new.
    """
    try:
        with on_stage("publish", "events", count) as step:
            done = publish_new(settings, envelopes, step, execute=True, untimed=untimed)
    except TranscriptError as error:
        return IngestReport(refused=(RefusedInput.unreadable(name, error),))
    except LogUnavailable as error:
        return IngestReport(refused=(RefusedInput(name, str(error)),))
    return IngestReport(
        files=1,
        events=done.events,
        level="logged" if done.logged else "spooled",
        refused=_refused_events(name, done),
        refused_turns=done.refused_events,
    )


def _refused_events(name: str, done: ImportResult) -> tuple[RefusedInput, ...]:
    named = [RefusedInput(f"{name}: event {known}", why) for known, why in done.refused.items()]
    unnamed = done.refused_events - len(named)
    more = [RefusedInput(name, f"{unnamed} more events were refused")] if unnamed else []
    return (*named, *more)
