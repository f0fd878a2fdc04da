"""How fast workers apply, seen from outside: samples of their tallies, and the steady part's rate.

Start, hand-over of lanes and the last stragglers are left out: the rate is that between two shares
of the work (`steady`), or over a while in which the lanes are spread evenly (`balanced`).
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from memorybus.config.settings import Settings
from stage import WAIT_SECONDS, Stage, wait_for
from tally import Tally

from providers import TALLIES

_SAMPLE_SECONDS = 0.05
"""Seconds between samples: seldom enough that looking costs the watched cores nothing."""


class Sample(msgspec.Struct, frozen=True):
    """What was seen at one moment.

    Attributes:
        at: monotonic time, seconds.
        applied: events applied so far.
        owned: how many lanes each worker owned, most first.
        rss: resident bytes of the first worker; 0 if not asked for.
    """

    at: float
    applied: int
    owned: tuple[int, ...] = ()
    rss: int = 0


class Applied:
    """Adds up what all processes of one provider instance have applied."""

    def __init__(self, settings: Settings, provider: str) -> None:
        """Find the directory; its files come as workers open the provider."""
        self._directory = settings.provider_home(provider) / TALLIES
        self._tallies: dict[Path, Tally] = {}

    def tallies(self) -> list[Tally]:
        """Return the tally of each process."""
        for path in self._directory.glob("*") if self._directory.exists() else ():
            if path not in self._tallies:
                self._tallies[path] = Tally(path)
        return list(self._tallies.values())

    def total(self) -> int:
        """Return how many events were applied."""
        return sum(tally.seen().count for tally in self.tallies())


def owned(stage: Stage, provider: str) -> tuple[int, ...]:
    """Return how many lanes each worker owns, most first."""
    counts = Counter(stage.owners(provider).values())
    return tuple(sorted(counts.values(), reverse=True))


def await_spread(stage: Stage, provider: str, workers: int) -> None:
    """Wait until every worker owns its equal share of the lanes."""
    share = stage.settings.partitions // workers
    wait_for(
        f"{workers} workers to own {share} lanes each",
        lambda: owned(stage, provider) == (share,) * workers,
        look=_SAMPLE_SECONDS,
    )


def watch(
    look: Callable[[], Sample], events: int | None = None, seconds: float = WAIT_SECONDS
) -> list[Sample]:
    """Take samples for some seconds, or until so many events are applied.

    Raises:
        TimeoutError: so many are not applied by then.
    """
    samples = [look()]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if events is not None and samples[-1].applied >= events:
            return samples
        time.sleep(_SAMPLE_SECONDS)
        samples.append(look())
    if events is not None:
        raise TimeoutError(f"{samples[-1].applied} of {events} events after {seconds:g} s")
    return samples


def part(samples: Sequence[Sample], events: int, first: float, last: float) -> list[Sample]:
    """Return the samples between two shares of all events."""
    return [one for one in samples if first * events <= one.applied <= last * events]


def rate(samples: Sequence[Sample]) -> float:
    """Return events per second from the first sample to the last.

    Raises:
        RuntimeError: there are too few samples to tell.
    """
    if len(samples) < 5:
        raise RuntimeError(f"only {len(samples)} samples: too few events for a rate")
    begin, end = samples[0], samples[-1]
    return (end.applied - begin.applied) / (end.at - begin.at)
