"""Counts by how many events the log grows while something is published."""

from contextlib import closing

import msgspec
from memorybus.config.settings import Settings
from memorybus.errors import AccessDenied, LogUnavailable
from memorybus.log.stream import EventLog
from memorybus.redis.connect import connect_redis

from memorybus_console.operations.ingest.report import IngestReport


def count_logged(settings: Settings) -> int | None:
    """Return how many events the log has ever taken, or None if Redis does not answer.

    Raises:
        MemoryBusError: Redis answers, but must not be used as it is.
    """
    with closing(connect_redis(settings)) as redis:
        log = EventLog(redis, settings)
        try:
            log.open()
            return sum(head.n for head in log.heads())
        except AccessDenied:
            raise
        except LogUnavailable:
            return None


def note_growth(settings: Settings, report: IngestReport, before: int | None) -> IngestReport:
    """Return the report with the number of events by which the log has grown.

    The number is unknown if Redis did not answer before, or has not taken everything since.
    """
    if before is None or report.level != "logged":
        return report
    after = count_logged(settings)
    return msgspec.structs.replace(report, new_events=None if after is None else after - before)
