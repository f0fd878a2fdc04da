"""How fast the past is applied again, against reading it by hand; what keeping it costs.

Two servers hold the same events: one in its log, one sealed and trimmed, so that every event comes
from the archive. In turn and several times, each in a process of its own: a real worker with a
provider that starts from nothing, which is what a replay is, and the floor (`floor_history`), which
reads the same bytes and decodes them into the same structs. Start-up is left out as in `drain`, and
so is loading pyarrow, on both sides.
"""

from apply.drain import drain_seconds
from filling import Filler, spread
from floors.runs import floor_per_s
from gauge import Figures, Size, medians
from stage import Stage

from history.past import KEYS, TEXTS, not_sealed, sealed, segments

NOOP = "bench.providers:PastProvider"
HOLOGRAPHIC = "bench.providers:OpenedHolographic"
_BULK_FACTOR = 3
"""Times as many events as a drain has: taking the lanes and opening 16 files weigh little then."""

_HOLOGRAPHIC_SHARE = 4
"""It is slower by an order of magnitude, so it gets a part of the events."""


def measure(size: Size) -> Figures:
    """Return rates and ratios."""
    count = size.drained
    found = _rates("noop", NOOP, _BULK_FACTOR * count, size.runs)
    slow = _rates("holographic", HOLOGRAPHIC, count // _HOLOGRAPHIC_SHARE, size.long_runs)
    return {
        "replay_archive_over_floor": found["noop_archive_over_floor"],
        "replay_log_over_floor": found["noop_log_over_floor"],
        "replay_archive_over_log": found["noop_archive_over_log"],
        "replay_archive_per_s": found["noop_archive_per_s"],
        "replay_archive_floor_per_s": found["noop_archive_floor_per_s"],
        "replay_log_per_s": found["noop_log_per_s"],
        "replay_log_floor_per_s": found["noop_log_floor_per_s"],
        "replay_holographic_over_live": slow["holographic_archive_over_log"],
        "replay_holographic_per_s": slow["holographic_archive_per_s"],
    }


def _rates(name: str, kind: str, count: int, runs: int) -> Figures:
    with Stage() as log, sealed(count) as past:
        Filler(log, spread(log.settings.partitions, KEYS), texts=TEXTS).fill(count)
        log.settle()
        return medians([_run(log, past, f"{name}{number}", name, kind) for number in range(runs)])


def _run(log: Stage, past: Stage, instance: str, name: str, kind: str) -> Figures:
    count = sum(log.heads().values())
    live = count / drain_seconds(log, instance, kind)
    replayed = count / drain_seconds(past, instance, kind)
    figures = {
        f"{name}_archive_over_log": replayed / live,
        f"{name}_archive_per_s": replayed,
        f"{name}_log_per_s": live,
    }
    return figures | (_floors(log, past, instance, replayed, live) if kind == NOOP else {})


def _floors(log: Stage, past: Stage, instance: str, replayed: float, live: float) -> Figures:
    by_range = floor_per_s(log, "history", instance)
    files = [str(path) for path in segments(past)]
    options = ("--parquet", *files)
    by_column = floor_per_s(past, "history", instance, *options, missing=not_sealed(past))
    return {
        "noop_archive_over_floor": replayed / by_column,
        "noop_log_over_floor": live / by_range,
        "noop_archive_floor_per_s": by_column,
        "noop_log_floor_per_s": by_range,
    }
