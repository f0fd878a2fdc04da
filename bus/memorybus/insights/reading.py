"""Reads the insights of a bus."""

from contextlib import closing
from datetime import datetime, tzinfo

from memorybus.archive.archive import Archive
from memorybus.archive.location import archive_of
from memorybus.clock import SYSTEM, Clock
from memorybus.config.parsing import zone_named
from memorybus.config.settings import Settings
from memorybus.history.history import History
from memorybus.insights.counting import counting, import_duckdb
from memorybus.insights.report import Insights, Overview
from memorybus.insights.rows import CountableRows, find_rows
from memorybus.log.stream import EventLog
from memorybus.query.query import Query
from memorybus.redis.connect import connect_redis

_DAY_MS = 86_400_000


def read_insights(
    settings: Settings,
    *,
    days: int = 30,
    agent: str | None = None,
    user: str | None = None,
    platform: str | None = None,
    zone: str = "",
    clock: Clock = SYSTEM,
) -> Insights:
    """Return the figures of the last days.

    Args:
        days: how many days, from now back, at most to 1970.
        agent: only this agent's; None for all, likewise `user` and `platform`.
        zone: the time zone of weekdays, hours and days; "" for that of the settings.

    Raises:
        MissingDuckDb: the extra `insights` is not installed.
        ConfigError: there is no such zone.
        LogUnavailable: Redis is away.
        ArchiveError: the archive or its tombstones cannot be read.
    """
    chosen = chosen_zone(settings, zone)
    until = clock.now_ms()
    since = max(0, until - days * _DAY_MS)
    wanted = Query(
        agents=_words(agent),
        users=_words(user),
        platforms=_words(platform),
    )
    rows, forgotten = _find(settings, since, clock)
    with counting(rows, since, wanted, forgotten) as counter:
        figures = counter.figures(chosen)
        return Insights(
            days=days,
            since=since,
            until=until,
            zone=_zone_name(chosen, until),
            agent=agent,
            user=user,
            platform=platform,
            **figures,
            gaps=[*rows.gaps, *_gaps(figures["overview"], counter.without_content())],
        )


def chosen_zone(settings: Settings, name: str) -> tzinfo:
    """Return the zone of this name; that of the settings for "".

    Raises:
        ConfigError: there is no such zone.
    """
    return zone_named(name) if name else settings.zone


def _find(settings: Settings, since: int, clock: Clock) -> tuple[CountableRows, tuple[Query, ...]]:
    """Return where the rows are, and which of them nobody may read."""
    import_duckdb()
    with closing(connect_redis(settings)) as redis:
        archive: Archive | None = archive_of(redis, settings, clock)
        history = History(EventLog(redis, settings, clock), archive, clock=clock)
        with closing(history):
            history.log.open()
            return find_rows(history, archive, since), history.forgotten_queries()


def _zone_name(zone: tzinfo, at: int) -> str:
    """Return a zone's name in the IANA database; that of a host's file is only short (CET)."""
    key: str | None = getattr(zone, "key", None)
    return key or str(datetime.fromtimestamp(at / 1000, zone).tzname())


def _words(name: str | None) -> tuple[str, ...]:
    """Return a name for a query; bytes of a command line that are no text stand in no name."""
    return () if name is None else (name.encode(errors="replace").decode(),)


def _gaps(overview: Overview, without_content: int) -> list[str]:
    """Return what the figures lack, in words; pure."""
    gaps = []
    if overview.turns_without_tokens:
        gaps.append(f"{overview.turns_without_tokens} of {overview.turns} turns have no tokens")
    if overview.sessions_without_cost:
        gaps.append(
            f"{overview.sessions_without_cost} of {overview.sessions} sessions have no cost"
        )
    if without_content:
        gaps.append(f"{without_content} events lost their content to `retention` and do not count")
    return gaps
