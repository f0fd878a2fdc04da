"""What a ``kill -9`` costs the lanes of its worker, beyond the time until they have another owner.

Two providers share a worker that owns all lanes. It is stopped, 4,000 events come into the log, and
it is killed; its lanes are free at once, as its supervisor would have it. The next worker's clock
runs from the opening of its providers to the last commit, so that taking the lanes counts. In the
calm nobody died before that worker.
"""

import signal

from gauge import Figures, Size, medians
from memorybus.config.settings import Settings
from memorybus.registry.reclaim import reclaim_lanes
from stage import Stage, wait_for

from apply.drain import NOOP, ROW, fill
from providers import OPENED

_BACKLOG = 4_000
_KINDS = {"noop": NOOP, "row": ROW}


def measure(size: Size) -> Figures:
    """Return the seconds after a kill over those in the calm, and both."""
    return medians([_run() for _ in range(size.runs)])


def _run() -> Figures:
    calm, after = _drain_seconds(kill=False), _drain_seconds(kill=True)
    return {
        "drain_after_kill_over_calm": after / calm,
        "drain_after_kill_s": after,
        "drain_calm_s": calm,
    }


def _drain_seconds(*, kill: bool) -> float:
    with Stage() as stage:
        settings = stage.with_providers(_KINDS)
        if kill:
            _die_before_a_backlog(stage, settings)
        else:
            fill(stage, _BACKLOG)
        with stage.worker(settings):
            ended_ms = max(map(stage.await_applied, _KINDS))
            opened = [settings.provider_home(name) / OPENED for name in _KINDS]
            return (ended_ms - min(int(file.read_text()) for file in opened)) / 1_000


def _die_before_a_backlog(stage: Stage, settings: Settings) -> None:
    with stage.workers(settings, 1) as (worker,):
        lanes = stage.settings.partitions
        wait_for(
            "the worker to own all lanes",
            lambda: all(len(stage.owners(name)) == lanes for name in _KINDS),
        )
        (owner,) = {owner for name in _KINDS for owner in stage.owners(name).values()}
        worker.send_signal(signal.SIGSTOP)
        fill(stage, _BACKLOG)
        worker.kill()
        worker.wait()
    reclaim_lanes(settings, owner)
