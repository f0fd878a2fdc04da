"""What a drain loses while it is watched: a worker with metrics, scraped every second.

The same full log, worked off by a real worker under its supervisor, which serves the metrics: with
``--metrics`` and a scraper beside it, and without, in turns; who begins changes with each round.
Both run on the cores that the server, the supervisor and this suite have, too.
"""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from statistics import median

from drain import NOOP, drain_seconds
from filling import Filler, spread
from gauge import Figures, Size
from stage import Stage, free_port

_EVERY = 1.0
"""Seconds between scrapes."""

_TIMES = 4
"""The drain takes so many times the events of a common one: several scrapes fall into it."""

_SUPERVISED = ("--processes", "1")


def measure(size: Size) -> Figures:
    """Return the ratio, and events per second of both."""
    with Stage() as stage:
        count = _TIMES * size.drained
        Filler(stage, spread(stage.settings.partitions, 64)).fill(count)
        rounds = [_round(stage, number, count) for number in range(size.runs)]
    plain, scraped = zip(*rounds, strict=True)
    return {
        "drain_with_metrics_over_without": median(s / p for p, s in rounds),
        "drain_with_metrics_per_s": median(scraped),
        "drain_without_metrics_per_s": median(plain),
    }


def _round(stage: Stage, number: int, count: int) -> tuple[float, float]:
    """Drain once without and once with metrics; return events per second of each."""
    rates = {}
    for watched in (False, True) if number % 2 else (True, False):
        port = free_port()
        options = (*_SUPERVISED, *(("--metrics", str(port)) if watched else ()))
        with _scraping(port) if watched else nullcontext():
            seconds = drain_seconds(stage, f"noop{number}{watched}", NOOP, options)
        rates[watched] = count / seconds
    return rates[False], rates[True]


@contextmanager
def _scraping(port: int) -> Iterator[None]:
    """Scrape every second until the block ends, from when there is somebody to scrape.

    Raises:
        RuntimeError: nobody ever answered.
    """
    over, answered = threading.Event(), [0]

    def scrape() -> None:
        while not over.wait(_EVERY):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            try:
                connection.request("GET", "/metrics")
                answered[0] += connection.getresponse().read().count(b"memorybus_up 1.0")
            except OSError:
                continue  # it has not begun to listen, or not any more
            finally:
                connection.close()

    scraper = threading.Thread(target=scrape, daemon=True)
    scraper.start()
    try:
        yield
    finally:
        over.set()
        scraper.join()
    if not answered[0]:
        raise RuntimeError("the metrics were never scraped")
