"""``memorybus archive repair``: what keeps partitions from being sealed, and can be mended."""

import msgspec

from memorybus.archive.location import archive_of
from memorybus.archive.renumbering import TIMEOUT, Renumbering, RepeatedNumbers
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys


class Repaired(msgspec.Struct, frozen=True):
    """What a repair did, or would do.

    Attributes:
        twice: partitions of which numbers were given twice.
        entries: entries that got new numbers.
        executed: whether anything was to be done.
    """

    twice: list[RepeatedNumbers]
    entries: int
    executed: bool


def repaired(settings: Settings, *, execute: bool) -> Repaired:
    """Find the partitions of which numbers were given twice; give what is not sealed new ones.

    Raises:
        ArchiveTaken: an archiver is at work on one of them; those before it are mended.
        ArchiveUnavailable, ArchiveDamaged: the archive cannot be asked where it ends.
        LogUnavailable: no answer.
    """
    redis = connect_redis(settings, timeout=TIMEOUT)
    try:
        archive = archive_of(redis, settings)
        if archive is None:  # then the log was never born
            return Repaired([], 0, execute)
        log = Renumbering(redis, Keys(settings.namespace), archive, SYSTEM)
        found = [twice for p in range(settings.partitions) if (twice := log.find(p)) is not None]
        entries = sum(log.mend(twice) for twice in found) if execute else 0
    finally:
        redis.close()
    return Repaired(found, entries, execute)
