"""``memorybus archive run``: seals now what may be sealed."""

from memorybus.config.settings import Settings
from memorybus.processes.archiver_run import ArchiverRun
from memorybus.processes.commands import run_archiver

from memorybus_console.operations.archive.opening import missing_log_error


def archive_now(settings: Settings) -> ArchiverRun:
    """Seal events that are due, join small segments and trim the log, in a process of its own.

    Raises:
        ArchiveUnavailable: there is no log, or the archive cannot be reached.
        LogUnavailable: Redis does not answer.
        MemoryBusError: the process ended without a report.
    """
    done = run_archiver(settings)
    if not done.place:
        raise missing_log_error(settings)
    return done
