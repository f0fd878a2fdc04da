"""Opens the archive of the log that the settings name."""

from contextlib import closing

from memorybus.archive.archive import Archive
from memorybus.archive.location import archive_of
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.errors import ArchiveUnavailable
from memorybus.redis.connect import connect_redis


def open_archive(settings: Settings) -> Archive:
    """Return the archive of the log that the settings name; the caller closes it.

    Raises:
        ArchiveUnavailable: the log does not exist yet, or its archive lies on another host.
        LogUnavailable: Redis does not answer.
    """
    with closing(connect_redis(settings)) as redis:
        archive = archive_of(redis, settings)
    if archive is None:
        raise missing_log_error(settings)
    return archive


def missing_log_error(settings: Settings) -> ArchiveUnavailable:
    """Return the error which says that there is no log where the settings point."""
    return ArchiveUnavailable(
        f"there is no log in the namespace {settings.namespace!r} of {redacted(settings.redis_url)}"
        f": nothing was ever published there, and nothing is archived; if that is not what you "
        f"meant, name another with --namespace or --url; else publish first: memorybus ingest FILE"
    )
