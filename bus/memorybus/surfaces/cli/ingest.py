"""Ingest with a progress bar: parse everything, publish, wait until Redis has it."""

from collections.abc import Sequence
from pathlib import Path

from rich.progress import Progress

from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import AccessDenied, LogUnavailable
from memorybus.log.stream import EventLog
from memorybus.operations.ingest import ingest
from memorybus.operations.ingest.ingest import IngestReport, ParsedFile, RefusedInput
from memorybus.redis.connect import connect_redis
from memorybus.surfaces.views.output import Output

FLUSH_STEP = 0.5
PATIENCE = 20
"""So many steps without Redis, and the rest counts as spooled (G10)."""


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
    sources, refused = ingest.load(files)
    if not sources:
        return IngestReport(refused=tuple(refused))
    before = events_in_log(settings)
    turns = 0
    with output.progress("turns") as bar, MemoryBus.connect(settings) as bus:
        task = bar.add_task("publish", total=sum(source.transcript.turns for source in sources))
        for source in sources:
            done = ingest.publish(
                bus, source, agent=agent, user=user, on_turn=lambda: bar.advance(task)
            )
            turns += done.turns
            refused += done.refused
        logged = before is not None and _wait_logged(bus, bar)
    return _report(sources, refused, turns, logged=logged, before=before, settings=settings)


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
    """Wait for as long as events go out; give up when Redis has not been there for a while."""
    bar.add_task("send to Redis", total=None)
    idle = 0
    while idle < PATIENCE:
        if bus.flush("logged", timeout=FLUSH_STEP):
            return True
        idle = idle + 1 if bus.problem else 0
    return False


def _report(
    sources: Sequence[ParsedFile],
    refused: Sequence[RefusedInput],
    turns: int,
    *,
    logged: bool,
    before: int | None,
    settings: Settings,
) -> IngestReport:
    after = events_in_log(settings) if logged else None
    known = before is not None and after is not None
    return IngestReport(
        files=len(sources),
        sessions=sum(len(source.transcript.conversations) for source in sources),
        turns=turns,
        skipped=sum(source.transcript.skipped for source in sources),
        new_events=(after or 0) - (before or 0) if known else None,
        level="logged" if logged else "spooled",
        refused=tuple(refused),
    )
