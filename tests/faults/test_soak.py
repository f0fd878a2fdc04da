"""Row 15: half an hour of load with a random fault every few seconds; nothing grows (G1 to G6)."""

import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import psutil
import pytest
from helpers.faults import scale, sink
from helpers.faults.crew import Member
from helpers.faults.oracle import Verdict
from helpers.faults.results import counted
from helpers.faults.rows import FAST, Report
from helpers.faults.trial import Trial, sinks
from helpers.processes.waiting import wait_until
from helpers.redis.servers import RedisServer
from memorybus.clock import SYSTEM

LASTING = 60.0 * scale.MINUTES
WARM_UP = LASTING / 4
RATE = 500
VICTIMS = 3
BETWEEN = (5.0, 60.0)
SAMPLE_EVERY = 5.0
LOADING = 120.0
BUSY = FAST["call_timeout"] / 2
"""Seconds for which a sink waits for a locked file: it says so before its call is abandoned."""
TOLD = 5
"""Of so many events that came twice a failed run tells all that is known."""
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


@contextmanager
def kept_if_failed(directory: Path) -> Iterator[None]:
    """Keep what a run that fails has written, and say where: half an hour is not had again soon."""
    try:
        yield
    except BaseException:
        where = Path(tempfile.mkdtemp(prefix="memorybus-soak-"))
        for path in directory.iterdir():
            shutil.move(path, where)
        print(f"the run's journal, sinks and logs are kept in {where}")
        raise


def explained(trial: Trial, name: str, verdict: Verdict) -> str:
    """Return what a sink's files say of the events that came twice."""
    twice = list(verdict.twice)[:TOLD]
    lines = [line for event_id in twice for line in sink.story(trial.sink(name), event_id)]
    return "\n".join([name, *lines])


def slope(samples: list[Sample]) -> float:
    """Return the bytes an hour by which a process grows."""
    found = statistics.linear_regression([s.at for s in samples], [float(s.rss) for s in samples])
    return found.slope * 3_600


def test_a_run_that_fails_keeps_its_files(tmp_path, monkeypatch, capsys):
    """G4: what came twice in a long run can be looked into afterwards."""
    run_in, lasting = tmp_path / "run", tmp_path / "lasting"
    for directory in (run_in, lasting):
        directory.mkdir()
    (run_in / "journal").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(lasting))
    with pytest.raises(AssertionError), kept_if_failed(run_in):
        raise AssertionError
    (where,) = lasting.iterdir()
    assert (where / "journal").exists()
    assert str(where) in capsys.readouterr().out


@pytest.mark.soak
@pytest.mark.timeout(LASTING + 2_200)
def test_nothing_grows_in_half_an_hour(make_redis, make_trial, report, tmp_path):
    """G1 to G6: nothing lost or applied twice; a worker's memory, files and threads stay flat."""
    server = make_redis(appendonly="yes")
    # No transactional sink: its ledgers, one for each lane, fill up over more than half an hour.
    providers = sinks(tmp_path / "sinks", "Keyed", "Lookup", busy=BUSY)
    trial = make_trial(server, spool_keep=30.0, **providers)
    with kept_if_failed(tmp_path):
        run(trial, server, report)


def run(trial: Trial, server: RedisServer, report: Report) -> None:
    """Load it, let faults happen, judge it."""
    trial.write("--rate", RATE)
    trial.crew.start(1 + VICTIMS)
    trial.crew.wait_ready()
    witness = trial.crew.members[0]
    faults = Faults(trial, server, witness)
    samples = soaked(trial, faults, psutil.Process(witness.pid))
    faults.thaw(now=True)
    outcome = trial.finish(faults=1, timeout=300)
    is_long_enough = samples[-1].at - samples[0].at >= JUDGED_FROM
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
        assert not verdict.faults(may_be_stale=under_way), explained(trial, name, verdict)
    assert samples[-1].threads <= samples[0].threads
    assert samples[-1].fds <= samples[0].fds + 2
    assert growth < MOST_GROWTH or not is_long_enough


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
