"""Finds the archive of a log, and checks that this host reaches it."""

from typing import TYPE_CHECKING

from redis import Redis

from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import ArchiveUnavailable
from memorybus.log.continuity import PartitionView
from memorybus.log.inspection import LogInspector
from memorybus.log.stream import read_log_id
from memorybus.redis.connect import connected
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
    with connected(settings) as redis:
        states = LogInspector(redis, settings).read_partitions()
    return {partition: state.view for partition, state in states.items()}


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
