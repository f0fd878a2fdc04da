"""What a drain loses while it is watched: a worker with metrics, scraped every second.

The same full log, worked off by a real worker under its supervisor, which serves the metrics: with
``--metrics`` and a scraper beside it, and without, in turns.
Both run on the cores that the server, the supervisor and this suite have, too.
"""

import http.client
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from apply.drain import NOOP, drain_seconds
from filling import Filler, spread
from gauge import Figures, Size, in_turns
from stage import Stage, free_port

_SCRAPE_SECONDS = 1.0
"""Seconds between scrapes."""

_DRAIN_FACTOR = 4
"""The drain takes so many times the events of a common one: several scrapes fall into it."""

_SUPERVISED = ("--processes", "1")


def measure(size: Size) -> Figures:
    """Return the ratio, and events per second of both."""
    with Stage() as stage:
        count = _DRAIN_FACTOR * size.drained
        Filler(stage, spread(stage.settings.partitions, 64)).fill(count)
        stage.settle()
        names = (f"noop{number}" for number in itertools.count())
        sides = {
            "plain": lambda: count / drain_seconds(stage, next(names), NOOP, _SUPERVISED),
            "scraped": lambda: count / _scraped_seconds(stage, next(names)),
        }
        rates = in_turns(sides, size.long_runs + 1)
    return {
        "drain_with_metrics_over_without": rates["scraped"] / rates["plain"],
        "drain_with_metrics_per_s": rates["scraped"],
        "drain_without_metrics_per_s": rates["plain"],
    }


def _scraped_seconds(stage: Stage, name: str) -> float:
    port = free_port()
    with _scraping(port):
        return drain_seconds(stage, name, NOOP, (*_SUPERVISED, "--metrics", str(port)))


@contextmanager
def _scraping(port: int) -> Iterator[None]:
    """Scrape every second until the block ends, from when there is somebody to scrape.

    Raises:
        RuntimeError: nobody ever answered.
    """
    over, answered = threading.Event(), [0]

    def scrape() -> None:
        while not over.wait(_SCRAPE_SECONDS):
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
