"""Says which figures are metrics: their names, what they mean, and where a status has them.

Names are Prometheus's: base units, `_total` for what only grows, times instead of ages. No label
names a session, a person or an agent.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final, Generic, TypeVar

import msgspec

from memorybus.health.monitor import SpoolStatus, Status
from memorybus.health.providers import ProviderStatus
from memorybus.health.recalls import JobsStatus
from memorybus.registry.work import Histogram

_T = TypeVar("_T")


class Figure(msgspec.Struct, Generic[_T], frozen=True):
    """One number of something.

    Attributes:
        name: the metric's name without the prefix. It is a counter if it ends with ``_total``.
        help: what it means, in one sentence.
        of: returns the number from the thing; None if there is none now.
    """

    name: str
    help: str
    of: Callable[[_T], float | None]


def seconds(at: str | None) -> float | None:
    """Return a time of a status as seconds since the Unix epoch; None for none."""
    return datetime.fromisoformat(at).timestamp() if at else None


SPOOL: Final[tuple[Figure[SpoolStatus], ...]] = (
    Figure("spool_events", "Events in this host's spools that wait for Redis.", lambda s: s.events),
    Figure("spool_bytes", "Bytes that these take.", lambda s: s.bytes),
    Figure(
        "spool_oldest_timestamp_seconds",
        "When the oldest of these was published.",
        lambda s: seconds(s.oldest_at),
    ),
)

HOST: Final[tuple[Figure[SpoolStatus], ...]] = (
    Figure("host_spool_events", "The same by host, as its workers report.", lambda s: s.events),
    Figure(
        "host_spool_oldest_timestamp_seconds",
        "When the oldest of these was published.",
        lambda s: seconds(s.oldest_at),
    ),
)

WHOLE: Final[tuple[Figure[Status], ...]] = (
    Figure("events_published_total", "Events that entered the log.", lambda s: s.log.published),
    Figure("duplicates_total", "Events that came again, skipped.", lambda s: s.log.duplicates),
    Figure("conflicts_total", "Those with another payload, refused.", lambda s: s.log.conflicts),
    Figure("log_entries", "Events that Redis holds.", lambda s: s.log.entries),
    Figure("log_bytes", "What these take of its memory.", lambda s: s.log.bytes),
    Figure(
        "log_oldest_timestamp_seconds",
        "When the oldest of these entered the log: older events were trimmed.",
        lambda s: seconds(s.log.oldest_at),
    ),
    Figure(
        "canary_last_success_timestamp_seconds",
        "When a canary last passed every lane.",
        lambda s: seconds(s.canary_at),
    ),
    Figure("log_gaps", "Gaps in the numbers of the log.", lambda s: len(s.continuity.gaps)),
    Figure("log_losses", "Recorded losses of the log.", lambda s: len(s.continuity.losses)),
    Figure("archive_working", "Whether some worker archives.", lambda s: s.archive.working),
    Figure("archive_sealed_events", "Events that are sealed.", lambda s: s.archive.sealed),
    Figure("archive_unsealed_events", "Events not sealed yet.", lambda s: s.archive.unsealed),
    Figure(
        "archive_oldest_unsealed_timestamp_seconds",
        "When the oldest of these entered the log: all older events are sealed.",
        lambda s: seconds(s.archive.oldest_unsealed_at),
    ),
    Figure("archive_segments", "Files of the archive.", lambda s: s.archive.segments),
    Figure("archive_bytes", "Bytes that these take.", lambda s: s.archive.bytes),
    Figure("redis_used_bytes", "Memory that Redis uses.", lambda s: s.memory.used),
    Figure("redis_limit_bytes", "Memory that it may use.", lambda s: s.memory.limit),
)

PROVIDER: Final[tuple[Figure[ProviderStatus], ...]] = (
    Figure("backlog_events", "Events that wait for the provider.", lambda p: p.backlog),
    Figure(
        "oldest_unapplied_timestamp_seconds",
        "When the oldest of these was published.",
        lambda p: seconds(p.oldest_unapplied_at),
    ),
    Figure(
        "busiest_lane_backlog_events",
        "Those of them in the lane that has the most.",
        lambda p: p.busiest_backlog,
    ),
    Figure("dead_letters", "Refused events, and those behind them.", lambda p: p.dead_letters),
    Figure("refused_events", "Events refused for good.", lambda p: p.refused),
    Figure("waiting_behind_events", "Events behind refused ones.", lambda p: p.waiting_behind),
    Figure("parked_keys", "Keys that wait for an operator.", lambda p: p.parked_keys),
    Figure("lanes", "The provider's lanes.", lambda p: p.lanes),
    Figure("lanes_owned", "Those that a live worker owns.", lambda p: p.lanes_owned),
    Figure("provider_failing", "Whether all its calls fail.", lambda p: bool(p.failing)),
    Figure("provider_paused", "Whether it is paused.", lambda p: bool(p.paused)),
    Figure("redelivered_total", "Events applied again in doubt.", lambda p: p.work.redelivered),
    Figure("retries_total", "Tries that failed, made again.", lambda p: p.work.retried),
    Figure("parked_total", "Events refused for good.", lambda p: p.work.parked),
    Figure("fenced_writes_total", "Writes of former owners, refused.", lambda p: p.work.fenced),
    Figure("lost_leases_total", "Leases lost while at work.", lambda p: p.work.lost),
)

HISTOGRAM: Final[tuple[tuple[str, str, Callable[[ProviderStatus], Histogram]], ...]] = (
    ("apply_duration_seconds", "How long calls took, of a chunk together.", lambda p: p.work.apply),
    ("log_to_applied_seconds", "From the log to the effect.", lambda p: p.work.latency),
)

RECALL: Final[tuple[Figure[JobsStatus], ...]] = (
    Figure("recall_nothing_total", "Recalls that found nothing.", lambda j: j.prompts.nothing),
    Figure("recall_jobs_queued", "Recall jobs that wait.", lambda j: j.queued),
    Figure("recall_jobs_started", "Recall jobs that run.", lambda j: j.started),
    Figure("recall_jobs_failed_total", "Recall jobs that failed.", lambda j: j.failed),
    Figure("recall_jobs_skipped_total", "Recalls not made: pause or bound.", lambda j: j.skipped),
    Figure(
        "recall_jobs_oldest_timestamp_seconds",
        "When the oldest waiting recall was requested.",
        lambda j: seconds(j.oldest_at),
    ),
    Figure("recall_paused", "Whether asking pauses after failures.", lambda j: j.paused),
)
