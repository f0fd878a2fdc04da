"""What a look at everything costs: five providers over 16 partitions, as Prometheus scrapes it.

The log is filled, one provider has applied all of it and the others are behind. Each scrape is a
real HTTP request, and comes later than a look is kept, so that each asks Redis anew;
``metrics_scrape_redis_ms`` is what Redis itself spends on one, by its own statistics.
"""

import http.client
import time

from filling import Filler, spread
from gauge import Figures, Size, medians
from memorybus.clock import SYSTEM
from memorybus.health.metrics_server import Address, serve_metrics
from memorybus.health.verdict import CACHE_SECONDS
from memorybus_workers.processes.service import Liveness
from stage import Stage

_PROVIDERS = 5
_SCRAPES = 11
_NOOP = "bench.providers:NoopProvider"


def measure(size: Size) -> Figures:
    """Return milliseconds of a scrape, of Redis in it, and its size in bytes."""
    with Stage() as stage:
        settings = stage.with_providers({f"noop{n}": _NOOP for n in range(_PROVIDERS)})
        Filler(stage, spread(settings.partitions, 64)).fill(size.drained)
        with stage.worker(stage.with_providers({"noop0": _NOOP})):
            stage.await_applied("noop0")
        with serve_metrics(settings, Address("127.0.0.1", 0), Liveness(SYSTEM)) as where:
            _scrape(where)
            return medians([_measured(stage, where) for _ in range(_SCRAPES)])


def _measured(stage: Stage, where: Address) -> Figures:
    time.sleep(CACHE_SECONDS)
    before = _redis_ms(stage)
    began = time.perf_counter()
    size = _scrape(where)
    took = time.perf_counter() - began
    return {
        "metrics_scrape_ms": took * 1000,
        "metrics_scrape_redis_ms": _redis_ms(stage) - before,
        "metrics_scrape_bytes": float(size),
    }


def _scrape(where: Address) -> int:
    connection = http.client.HTTPConnection(where.host, where.port)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.status != http.client.OK or b"memorybus_up 1.0" not in text:
        raise RuntimeError(f"the scrape failed: {answer.status}")
    return len(text)


def _redis_ms(stage: Stage) -> float:
    """Return the milliseconds that Redis has spent on commands since it began."""
    stats = stage.redis.info("commandstats")
    return sum(float(one["usec"]) for one in stats.values()) / 1000
