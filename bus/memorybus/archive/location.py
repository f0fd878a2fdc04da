"""Finds the archive of a log, and checks that this host reaches it."""

from typing import TYPE_CHECKING

from redis import Redis
from redis.exceptions import RedisError

from memorybus.clock import SYSTEM, Clock
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.errors import ArchiveUnavailable
from memorybus.log.continuity import PartitionView
from memorybus.log.inspection import LogInspector
from memorybus.log.stream import read_log_id
from memorybus.redis.connect import connect_redis, translate_redis_error
from memorybus.redis.keys import Keys, lane_name
from memorybus.registry.homes import Homes, home_elsewhere

if TYPE_CHECKING:
    from memorybus.archive.archive import Archive

ARCHIVER = "@archive"
"""The name under which the home of the default archive is noted, as if it were a provider."""


def archive_of(redis: Redis, settings: Settings, clock: Clock = SYSTEM) -> "Archive | None":
    from memorybus.archive.archive import Archive

    keys = Keys(settings.namespace)
    log_id = read_log_id(redis, keys)
    if log_id is None:
        return None
    if not settings.archive:
        _check_home(redis, keys, settings)
    return Archive.from_settings(settings, log_id, clock=clock)


def views_of(settings: Settings) -> dict[int, PartitionView]:
    """Return the partitions as Redis has them now, without those whose key is not ours."""
    redis = connect_redis(settings)
    try:
        return {
            p: state.view for p, state in LogInspector(redis, settings).read_partitions().items()
        }
    except (RedisError, OSError) as error:
        raise translate_redis_error(error, redacted(settings.redis_url)) from error
    finally:
        redis.close()


def check_reaches(archive: "Archive | None", partition: int, sealed: int) -> None:
    end = archive.end(partition) if archive else None
    archived = end.n if end else 0
    if archived < sealed:
        where = f"in {archive.where} ends at {archived}" if archive else "is not known"
        raise ArchiveUnavailable(
            f"partition {lane_name(partition)}: events up to {sealed} were sealed, and the archive "
            f"{where}: mount it, set `archive` to the place that has them, or restore its newest "
            f"manifest (see: memorybus archive verify)"
        )


def _check_home(redis: Redis, keys: Keys, settings: Settings) -> None:
    elsewhere = home_elsewhere(Homes(redis, keys).all().get(ARCHIVER), settings)
    if elsewhere is not None:
        raise ArchiveUnavailable(
            f"the archive of this log is on {elsewhere.host} in {elsewhere.path}: run this "
            "there, or move it to a place that every worker reaches and name that in the setting "
            "`archive`"
        )
