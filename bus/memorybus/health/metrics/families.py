"""A status as Prometheus's metric families; pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TypeVar, get_args

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from memorybus.health.finding import Code, Finding, Severity
from memorybus.health.metrics.figures import (
    HISTOGRAM,
    HOST,
    PROVIDER,
    RECALL,
    SPOOL,
    WHOLE,
    Figure,
)
from memorybus.health.monitor import SpoolStatus, Status
from memorybus.health.providers import ProviderStatus
from memorybus.health.recalls import JobsStatus
from memorybus.health.services import findings_of
from memorybus.registry.work import Histogram

PREFIX = "memorybus_"

_T = TypeVar("_T")


def status_metrics(
    status: Status, version: str, configured: Sequence[str], now_ms: int
) -> Iterator[Metric]:
    """Yield all metrics of a status.

    Args:
        status: as it was read once.
        version: of this release.
        configured: the providers of the settings.
        now_ms: the wall time.
    """
    yield from process_metrics(status.spool, version, up=True)
    yield from _figures(WHOLE, {"": status}, "")
    providers = {one.name: one for one in status.providers}
    yield from _figures(PROVIDER, providers, "provider")
    yield _applied(status.providers)
    for name, text, of in HISTOGRAM:
        yield _histogram(name, text, {key: of(one) for key, one in providers.items()})
    yield from _figures(RECALL, {one.provider: one for one in status.jobs}, "provider")
    yield from _prompts(status.jobs)
    yield _versions(status)
    yield from _figures(HOST, {one.host: one.spool for one in status.spools}, "host")
    yield _findings(findings_of(status, configured, now_ms))


def process_metrics(spool: SpoolStatus, version: str, *, up: bool) -> Iterator[Metric]:
    """Yield what is known without Redis.

    Args:
        spool: the spools of this host.
        version: of this release.
        up: whether Redis answers.
    """
    yield GaugeMetricFamily(f"{PREFIX}up", "Whether the log's Redis answers.", float(up))
    yield InfoMetricFamily(f"{PREFIX}build", "The release that reports this.", {"version": version})
    yield from _figures(SPOOL, {"": spool}, "")


def _figures(
    figures: Iterable[Figure[_T]], things: Mapping[str, _T], label: str
) -> Iterator[Metric]:
    """Yield a family for each figure, with the numbers of all things that have one."""
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
    for one in providers:
        family.add_metric([one.name, "applied"], one.applied)
        family.add_metric([one.name, "discarded"], one.discarded)
    return family


def _histogram(name: str, text: str, things: Mapping[str, Histogram]) -> Metric:
    family = HistogramMetricFamily(f"{PREFIX}{name}", text, labels=["provider"])
    for provider, one in things.items():
        if one.counts:
            upto = accumulate(one.counts.values())
            buckets = list(zip(one.counts, map(float, upto), strict=True))
            family.add_metric([provider], buckets, one.sum)
    return family


def _prompts(jobs: Sequence[JobsStatus]) -> Iterator[Metric]:
    text = "Prompts by result: warm, fresh (asked, and in time) or late (asked, not in time)."
    answers = CounterMetricFamily(f"{PREFIX}recall", text, labels=["provider", "result"])
    text = "How long prompts waited for a fresh recall."
    waits = SummaryMetricFamily(f"{PREFIX}recall_wait_seconds", text, labels=["provider"])
    for one in jobs:
        counts = one.prompts
        answers.add_metric([one.provider, "warm"], counts.warm)
        answers.add_metric([one.provider, "fresh"], counts.fresh)
        answers.add_metric([one.provider, "late"], counts.late)
        waits.add_metric([one.provider], counts.fresh + counts.late, counts.waited_ms / 1000)
    return iter((answers, waits))


def _versions(status: Status) -> Metric:
    text = "Workers that are alive, by release."
    family = GaugeMetricFamily(f"{PREFIX}workers", text, labels=["version"])
    for release, count in Counter(one.version for one in status.workers).items():
        family.add_metric([release], count)
    return family


def _findings(findings: Sequence[Finding]) -> Metric:
    """Return how many findings there are of each kind: what `memorybus status` shows in red."""
    found = Counter((one.code, one.severity) for one in findings)
    text = "What is wrong, by kind, as `memorybus status` and `memorybus check` report it."
    family = GaugeMetricFamily(f"{PREFIX}findings", text, labels=["code", "severity"])
    for code in get_args(Code):
        for severity in get_args(Severity):
            family.add_metric([code, severity], found[code, severity])
    return family
