"""Where the archive of a log lies, and whether that is reached from here."""

from typing import TYPE_CHECKING

from redis import Redis
from redis.exceptions import RedisError

from memorybus.clock import SYSTEM, Clock
from memorybus.errors import ArchiveUnavailable
from memorybus.homes import Homes, found_here, is_same
from memorybus.keys import Keys
from memorybus.links import translated
from memorybus.settings import Settings

if TYPE_CHECKING:
    from memorybus.archive import Archive

ARCHIVER = "@archive"
"""The pseudo provider whose home is the default archive's."""


def archive_of(redis: Redis, settings: Settings, clock: Clock = SYSTEM) -> "Archive | None":
    """Return the archive of the log in `redis`; None if the log is not born yet.

    Raises:
        ArchiveUnavailable: it lies on another host.
        LogUnavailable: no answer.
    """
    from memorybus.archive import Archive

    keys = Keys(settings.namespace)
    log_id = _log_id(redis, keys)
    if log_id is None:
        return None
    if not settings.archive:
        _check_home(redis, keys, settings)
    return Archive.of(settings, log_id, clock=clock)


def _log_id(redis: Redis, keys: Keys) -> str | None:
    try:
        found = redis.hget(keys.meta, "log")
    except (RedisError, OSError) as error:
        raise translated(error, keys.meta) from error
    return found.decode() if isinstance(found, bytes) else None


def _check_home(redis: Redis, keys: Keys, settings: Settings) -> None:
    held = Homes(redis, keys).all().get(ARCHIVER)
    if held is not None and not is_same(held, found_here(settings)):
        raise ArchiveUnavailable(
            f"the archive of this log lies on {held.host} in {held.path}: run this there, or move "
            f"it to a place that every worker reaches and name that in the setting `archive`"
        )
