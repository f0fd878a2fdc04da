"""The status as Prometheus reads it: the same figures and findings, under its rules for names."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from itertools import accumulate
from typing import Final, Generic, TypeVar, get_args

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.health.finding import Code, Finding, Severity
from memorybus.health.findings import findings_of
from memorybus.health.monitor import read_with_lanes, spool_status
from memorybus.health.status import (
    JobsStatus,
    ProviderStatus,
    SpoolStatus,
    Status,
    StatusWithLanes,
)
from memorybus.health.verdict import BusStateCache
from memorybus.registry.work import Histogram

_T = TypeVar("_T")


class Figure(msgspec.Struct, Generic[_T], frozen=True):
    """One number of something."""

    name: str  # the metric's name without the prefix. It is a counter if it ends with ``_total``
    help: str  # what it means, in one sentence
    of: Callable[[_T], float | None]  # returns the number from the thing; None if there is none now


def seconds(at: str | None) -> float | None:
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
    Figure("log_gaps", "Ranges of numbers that are gone.", lambda s: len(s.continuity.gaps)),
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
    ("log_to_applied_seconds", "From the log until applied.", lambda p: p.work.latency),
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


PREFIX = "memorybus_"


def status_metrics(
    status: Status, version: str, configured: Sequence[str], now_ms: int
) -> Iterator[Metric]:
    yield from process_metrics(status.spool, version, up=True)
    yield from _figures(WHOLE, {"": status}, "")
    providers = {provider.name: provider for provider in status.providers}
    yield from _figures(PROVIDER, providers, "provider")
    yield _applied(status.providers)
    for name, text, of in HISTOGRAM:
        yield _histogram(name, text, {key: of(provider) for key, provider in providers.items()})
    yield from _figures(RECALL, {queue.provider: queue for queue in status.jobs}, "provider")
    yield from _prompts(status.jobs)
    yield _versions(status)
    yield from _figures(HOST, {spool.host: spool.spool for spool in status.spools}, "host")
    yield _findings(findings_of(status, configured, now_ms))


def process_metrics(spool: SpoolStatus, version: str, *, up: bool) -> Iterator[Metric]:
    """Yield what is known without Redis."""
    yield GaugeMetricFamily(f"{PREFIX}up", "Whether the log's Redis answers.", float(up))
    yield InfoMetricFamily(f"{PREFIX}build", "The release that reports this.", {"version": version})
    yield from _figures(SPOOL, {"": spool}, "")


def _figures(
    figures: Iterable[Figure[_T]], things: Mapping[str, _T], label: str
) -> Iterator[Metric]:
    labels = [label] if label else []
    for figure in figures:
        counts = figure.name.endswith("_total")
        kind = CounterMetricFamily if counts else GaugeMetricFamily
        family = kind(f"{PREFIX}{figure.name}", figure.help, labels=labels)
        for name, thing in things.items():
            value = figure.of(thing)
            if value is not None:
                family.add_metric([name] if label else [], float(value))
        yield family


def _applied(providers: Sequence[ProviderStatus]) -> Metric:
    text = "Events that are done for the provider: applied, or discarded by an operator."
    family = CounterMetricFamily(f"{PREFIX}applied_total", text, labels=["provider", "outcome"])
    for provider in providers:
        family.add_metric([provider.name, "applied"], provider.applied)
        family.add_metric([provider.name, "discarded"], provider.discarded)
    return family


def _histogram(name: str, text: str, things: Mapping[str, Histogram]) -> Metric:
    family = HistogramMetricFamily(f"{PREFIX}{name}", text, labels=["provider"])
    for provider, histogram in things.items():
        if histogram.counts:
            upto = accumulate(histogram.counts.values())
            buckets = list(zip(histogram.counts, map(float, upto), strict=True))
            family.add_metric([provider], buckets, histogram.sum)
    return family


def _prompts(jobs: Sequence[JobsStatus]) -> Iterator[Metric]:
    text = "Prompts by result: warm, fresh (recalled in time) or late (not in time)."
    answers = CounterMetricFamily(f"{PREFIX}recall", text, labels=["provider", "result"])
    text = "How long prompts waited for a fresh recall."
    waits = SummaryMetricFamily(f"{PREFIX}recall_wait_seconds", text, labels=["provider"])
    for queue in jobs:
        counts = queue.prompts
        answers.add_metric([queue.provider, "warm"], counts.warm)
        answers.add_metric([queue.provider, "fresh"], counts.fresh)
        answers.add_metric([queue.provider, "late"], counts.late)
        waits.add_metric([queue.provider], counts.fresh + counts.late, counts.waited_ms / 1000)
    return iter((answers, waits))


def _versions(status: Status) -> Metric:
    text = "Workers that are alive, by release."
    family = GaugeMetricFamily(f"{PREFIX}workers", text, labels=["version"])
    for release, count in Counter(worker.version for worker in status.workers).items():
        family.add_metric([release], count)
    return family


def _findings(findings: Sequence[Finding]) -> Metric:
    """Return how many findings there are of each kind: what `memorybus status` shows in red."""
    counts = Counter((finding.code, finding.severity) for finding in findings)
    text = "What is wrong, by kind, as `memorybus status` and `memorybus check` report it."
    family = GaugeMetricFamily(f"{PREFIX}findings", text, labels=["code", "severity"])
    for code in get_args(Code):
        for severity in get_args(Severity):
            family.add_metric([code, severity], counts[code, severity])
    return family


class BusCollector(Collector):
    """Shows the status to Prometheus. Any thread may call it."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock = SYSTEM,
        read: Callable[[Settings], StatusWithLanes] = read_with_lanes,
    ) -> None:
        self._settings = settings
        self._bus_state = BusStateCache(settings, clock, read)
        self._version = version("memorybus")

    def collect(self) -> Iterator[Metric]:
        """Yield metrics at most a second old; without Redis those that need none."""
        state = self._bus_state.read()
        if state.status is None:
            yield from process_metrics(spool_status(self._settings), self._version, up=False)
        else:
            configured = self._settings.providers
            yield from status_metrics(state.status, self._version, configured, state.at_ms)


def registry(settings: Settings) -> CollectorRegistry:
    collectors = CollectorRegistry(auto_describe=False)
    collectors.register(BusCollector(settings))
    return collectors
