"""Row 15: half an hour of load with a random fault every few seconds; nothing grows (G1 to G6)."""

import statistics
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil
import pytest
from conftest import MakeServer
from helpers import scale
from helpers.crew import Member
from helpers.results import counted
from helpers.rows import MakeTrial, Report
from helpers.servers import RedisServer
from helpers.trial import Trial
from helpers.waiting import wait_until
from memorybus.clock import SYSTEM

LASTING = 60.0 * scale.MINUTES
WARM_UP = LASTING / 4
RATE = 500
VICTIMS = 3
BETWEEN = (5.0, 60.0)
SAMPLE_EVERY = 5.0
LOADING = 120.0
MB = 1 << 20
MOST_GROWTH = 1 * MB
"""Bytes an hour that a worker may grow after it has warmed up."""
JUDGED_FROM = 1_200.0
"""Seconds after the warm-up from which a slope says something."""


class Sample(msgspec.Struct, frozen=True):
    """What a process used at a time, without what its sinks have open for the lanes it owns then.

    Attributes:
        at: when, in seconds (monotonic).
        rss: its resident bytes, mapped files apart: SQLite maps an index for each lane's file.
        fds: its open files; three of a lane's are not counted.
        threads: how many run.
    """

    at: float
    rss: int
    fds: int
    threads: int


def sample(process: psutil.Process, sinks: Path) -> Sample:
    """Measure a process that has files open below `sinks`."""
    with process.oneshot():
        theirs = [f for f in process.open_files() if Path(f.path).is_relative_to(sinks)]
        memory = process.memory_info()
        return Sample(
            SYSTEM.monotonic(),
            memory.rss - memory.shared,
            process.num_fds() - len(theirs),
            process.num_threads(),
        )


class Faults:
    """What may happen to a run; the witness is spared, so that it can be measured."""

    def __init__(self, trial: Trial, server: RedisServer, witness: Member) -> None:
        """Know the run."""
        self._trial = trial
        self._witness = witness
        self._frozen: list[tuple[float, Member]] = []
        self._kinds: dict[str, Callable[[], None]] = {
            "kill -9 worker": self._kill,
            "SIGTERM worker": self._terminate,
            "SIGSTOP worker": self._freeze,
            "kill -9 Redis": lambda: restart(server),
        }

    def fire(self) -> None:
        """Let one of them happen."""
        name = self._trial.rng.choice(list(self._kinds))
        self._trial.catch(name)
        self._kinds[name]()

    def thaw(self, *, now: bool = False) -> None:
        """Let those go on who have been stopped long enough."""
        due = [(at, m) for at, m in self._frozen if now or at <= SYSTEM.monotonic()]
        for entry in due:
            self._frozen.remove(entry)
            entry[1].child.thaw()

    def _victim(self) -> Member:
        frozen = [member for _, member in self._frozen]
        free = [m for m in self._trial.crew.checked() if m is not self._witness and m not in frozen]
        return self._trial.rng.choice(free)

    def _kill(self) -> None:
        self._trial.crew.kill(self._victim())
        self._trial.crew.start(1)

    def _terminate(self) -> None:
        self._trial.crew.dismiss(self._victim())
        self._trial.crew.start(1)

    def _freeze(self) -> None:
        if self._frozen:
            return self._kill()
        member = self._victim()
        member.child.freeze()
        self._frozen.append((SYSTEM.monotonic() + 3 * self._trial.settings.lease, member))
        return None


def restart(server: RedisServer) -> None:
    """Kill Redis and start it again, however long it takes to read what half an hour wrote."""
    server.kill()
    with suppress(AssertionError):  # its own patience is for small files
        server.start()
    wait_until(server._answers, "Redis has read its file", LOADING)


def slope(samples: list[Sample]) -> float:
    """Return the bytes an hour by which a process grows."""
    found = statistics.linear_regression([s.at for s in samples], [float(s.rss) for s in samples])
    return found.slope * 3_600


@pytest.mark.soak
@pytest.mark.timeout(LASTING + 2_200)
def test_nothing_grows_in_half_an_hour(
    make_redis: MakeServer, make_trial: MakeTrial, report: Report
) -> None:
    """G1 to G6: nothing lost or applied twice; a worker's memory, files and threads stay flat."""
    server = make_redis(appendonly="yes")
    # No transactional sink: its ledgers, one for each lane, fill up over more than half an hour.
    trial = make_trial(server, "Keyed", "Lookup", spool_keep=30.0)
    trial.write("--rate", RATE)
    trial.crew.start(1 + VICTIMS)
    trial.crew.wait_ready()
    witness = trial.crew.members[0]
    faults = Faults(trial, server, witness)
    samples = soaked(trial, faults, psutil.Process(witness.pid))
    faults.thaw(now=True)
    outcome = trial.finish(faults=1, timeout=300)
    judged = samples[-1].at - samples[0].at >= JUDGED_FROM
    growth = slope(samples)
    report(
        share=scale.MINUTES / scale.HALF_AN_HOUR,
        faults=len(outcome.faults),
        **counted(outcome.verdicts.values()),
        stale=sum(verdict.stale for verdict in outcome.verdicts.values()),
        minutes=(samples[-1].at - samples[0].at + WARM_UP) / 60,
        mb_more_per_hour=growth / MB,
        mb_at_first=samples[0].rss / MB,
        mb_at_last=samples[-1].rss / MB,
        files_more=samples[-1].fds - samples[0].fds,
        threads_more=samples[-1].threads - samples[0].threads,
    )
    under_way = sum(fault.name == "SIGSTOP worker" for fault in outcome.faults)
    for name, verdict in outcome.verdicts.items():  # a call under way may land late
        assert not verdict.faults(may_be_stale=under_way), name
    assert samples[-1].threads <= samples[0].threads
    assert samples[-1].fds <= samples[0].fds + 2
    assert growth < MOST_GROWTH or not judged


def soaked(trial: Trial, faults: Faults, process: psutil.Process) -> list[Sample]:
    """Let faults happen until the time is over; return what the witness used after its warm-up."""
    begin = SYSTEM.monotonic()
    samples: list[Sample] = []
    next_fault = begin + trial.rng.uniform(*BETWEEN)
    while SYSTEM.monotonic() < begin + LASTING:
        until = SYSTEM.monotonic() + SAMPLE_EVERY
        wait_until(lambda until=until: SYSTEM.monotonic() > until, "the next look", 10)
        trial.crew.checked()
        faults.thaw()
        if SYSTEM.monotonic() > begin + WARM_UP:
            samples.append(sample(process, trial.sink("keyed").parent))
        if SYSTEM.monotonic() > next_fault:
            faults.fire()
            next_fault = SYSTEM.monotonic() + trial.rng.uniform(*BETWEEN)
    return samples
