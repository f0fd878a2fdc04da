"""A status as a look returns it, made by hand."""

from collections.abc import Iterable
from typing import Any

import msgspec
from memorybus.health.finding import Finding
from memorybus.health.metrics import status_metrics
from memorybus.health.status import (
    Continuity,
    JobsStatus,
    Memory,
    ProviderStatus,
    RedisStatus,
    SpoolStatus,
    Status,
)

FOREIGN_ENTRIES = Finding("foreign_entries", "warning", "p01", "4 entries", "find who")

JOBS = JobsStatus("p", "mb-recall-p", 0, 0, 0, None, 0, 0, paused=False, failed_at=None, error="")
"""Recall jobs of which nothing is wrong."""


def status(
    *providers: ProviderStatus, alarms: Iterable[Finding] = (FOREIGN_ENTRIES,), **changed: Any
) -> Status:
    """Return a status of some providers, without a worker."""
    made = Status(
        redis=RedisStatus("unix:///x", "7.2.4", "aof:everysec"),
        spool=SpoolStatus(0, 0, None),
        partitions=16,
        providers=list(providers),
        workers=[],
        jobs=[],
        alarms=list(alarms),
        continuity=Continuity(None, []),
        memory=Memory(0, None, "unknown"),
        disk=None,
    )
    return msgspec.structs.replace(made, **changed)


def provider(**changed: Any) -> ProviderStatus:
    """Return a provider that is well but for `changed`."""
    return msgspec.structs.replace(ProviderStatus("p", 5, 0, None, 0, 0, 16, 16), **changed)


def metrics_told() -> set[str]:
    """Return the names of all series that Prometheus can be told, each with its endings."""
    seen = status(provider(), jobs=[JOBS])
    families = list(status_metrics(seen, "1", (), 0))
    samples = {sample.name for one in families for sample in one.samples}
    ends = {"gauge": ("",), "histogram": ("_bucket", "_sum", "_count"), "counter": ("_total",)}
    return samples | {f"{one.name}{end}" for one in families for end in ends.get(one.type, ())}
