"""``memorybus archive repair``: new numbers for entries, where numbers were given twice."""

import msgspec
from memorybus.archive.location import archive_of
from memorybus.archive.renumbering import TIMEOUT, Renumbering, RepeatedNumbers
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys


class RepairResult(msgspec.Struct, frozen=True):
    """What a repair did, or would do.

    Attributes:
        twice: partitions in which numbers were given twice.
        entries: entries that got new numbers.
        executed: whether the repair was carried out, not only planned.
    """

    twice: list[RepeatedNumbers]
    entries: int
    executed: bool


def repair_numbering(settings: Settings, *, execute: bool) -> RepairResult:
    """Find partitions in which numbers were given twice; renumber their unsealed entries.

    Raises:
        ArchiveTaken: an archiver works on one of them; the partitions before it are repaired.
        ArchiveUnavailable, ArchiveDamaged: the archive cannot say where it ends.
        LogUnavailable: Redis does not answer.
    """
    redis = connect_redis(settings, timeout=TIMEOUT)
    try:
        archive = archive_of(redis, settings)
        if archive is None:  # the log does not exist
            return RepairResult([], 0, execute)
        log = Renumbering(redis, Keys(settings.namespace), archive, SYSTEM)
        found = [twice for p in range(settings.partitions) if (twice := log.find(p)) is not None]
        entries = sum(log.mend(twice) for twice in found) if execute else 0
    finally:
        redis.close()
    return RepairResult(found, entries, execute)
