"""A state machine over the whole bus: real spool, scripts, lanes and appliers; time by hand.

Hypothesis chooses who does what next and where it stands still or dies. After every step the checks
of `helpers.model.model_checks` hold; at the end all is drained, and nothing may be missing.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import hypothesis
import pytest
from helpers.faults import scale
from helpers.model.model_backend import KINDS, Backend, points
from helpers.model.model_checks import Checks
from helpers.model.model_process import Process
from helpers.model.model_world import LEASE, PARTITIONS, World
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

ROOTS = ("s0", "s1", "s2", "s4", "s5")
FATES = ("ok", "ok", "ok", "ok", "transient:1", "transient:3", "transient:9", "permanent")
LANE_POINTS = (
    "lane.after_acquire",
    "lane.after_read",
    "lane.before_apply",
    "lane.after_apply",
    "lane.after_commit",
    "lane.before_release",
)
SENDER_POINTS = ("", "", "", "sender.before_append", "sender.after_append")
PROCESSES = 3
ROUNDS = 400
"""Turns in which a run must be drained."""

which = st.integers(0, 7)
pauses = st.integers(0, 30)
"""Which crash point to stand still at, and at which pass; most choose none."""


class Bus(RuleBasedStateMachine):
    """See the module."""

    url: ClassVar[str]
    begun: ClassVar[int] = 0

    # -- the beginning ----------------------------------------------------------------------------

    @initialize(kind=st.sampled_from(sorted(KINDS)))
    def begin(self, kind: str) -> None:
        """One kind of provider, one worker."""
        type(self).begun += 1
        self.kind = kind
        self.directory = Path(tempfile.mkdtemp(prefix="mb-m-"))
        self.world = World(self.url, self.directory)
        self.backend = Backend()
        self.checks = Checks(self.world, self.backend, "live", kind)
        self.processes: list[Process] = []
        self.all: list[Process] = []
        self.deaths = 0
        self.frozen: set[tuple[str, int, int]] = set()
        self.points = LANE_POINTS + points(kind)
        self.start_process()
        self.processes[0].wanted = frozenset(range(PARTITIONS))

    # -- the agent --------------------------------------------------------------------------------

    @rule(
        said=st.lists(st.tuples(st.sampled_from(ROOTS), st.sampled_from(FATES)), max_size=7),
        sends=st.sampled_from([True, True, False]),
    )
    def publish(self, said: list[tuple[str, str]], sends: bool) -> None:
        """Sessions say something, and the flusher may send it at once."""
        for root, fate in said:
            self.world.publish(root, fate)
        if sends:
            self.world.send()

    @rule(root=st.sampled_from(ROOTS), index=which)
    def publish_again(self, root: str, index: int) -> None:
        """A hook fires a second time."""
        said = self.world.said.get(root)
        if said:
            self.world.publish_again(said[-1 - index % len(said)])

    @rule(dies_at=st.sampled_from(SENDER_POINTS))
    def send(self, dies_at: str) -> None:
        """The flusher sends; it may die at a crash point."""
        self.world.send(dies_at)

    @rule()
    def tidy_spool(self) -> None:
        """The flusher deletes rows that Redis has on disk."""
        self.world.tidy_spool()

    # -- workers ----------------------------------------------------------------------------------

    @precondition(lambda self: sum(p.alive for p in self.processes) < PROCESSES)
    @rule()
    def start_process(self) -> None:
        """Another worker comes; it wants nothing yet."""
        self._started("live", self.backend)

    def _started(self, instance: str, backend: Backend) -> Process:
        name = f"w{len(self.all)}"
        world = self.world
        process = Process(name, world.settings, world.clock, self.kind, instance)
        self.all.append(process.opened(backend))
        if instance == "live":
            self.processes.append(process)
        return process

    @rule(index=which, wanted=st.frozensets(st.integers(0, PARTITIONS - 1)))
    def want(self, index: int, wanted: frozenset[int]) -> None:
        """The view of one worker changes; views may contradict each other."""
        living = [process for process in self.processes if process.alive]
        if living:
            living[index % len(living)].wanted = wanted

    @rule(index=which, times=st.integers(1, 4), pause=pauses, nth=st.integers(1, 4))
    def turn(self, index: int, times: int, pause: int, nth: int) -> None:
        """A worker goes through its loop, and stands still on the last way, if it does."""
        for left in reversed(range(times)):
            last = self._pause(pause, nth) if not left else ("", 0)
            self._work(index, lambda process, last=last: process.turn(last))

    @precondition(lambda self: any(p.running and p.in_flight for p in self.processes))
    @rule(index=which, tasks=st.lists(which, min_size=1, max_size=4), pause=pauses)
    def call(self, index: int, tasks: list[int], pause: int) -> None:
        """Some of the calls that are in flight side by side are made, in any order."""
        busy = [process for process in self.processes if process.running and process.in_flight]
        process = busy[index % len(busy)]
        for task in tasks[: process.in_flight]:
            last = self._pause(pause, 1) if task == tasks[-1] else ("", 0)
            if process.running:
                process.call(task, last)

    @rule(index=which, pause=pauses)
    def leave(self, index: int, pause: int) -> None:
        """A worker ends in good order."""
        self._work(index, lambda process: process.leave(self._pause(pause, 1)))

    def _pause(self, pause: int, nth: int) -> tuple[str, int]:
        return (self.points[pause], nth) if pause < len(self.points) else ("", 0)

    def _work(self, index: int, job: Callable[[Process], None]) -> None:
        running = [process for process in self.processes if process.running]
        if running:
            self.pass_some(1.0)
            job(running[index % len(running)])

    @precondition(lambda self: any(p.alive and p.paused_at for p in self.processes))
    @rule(index=which, renews_first=st.booleans())
    def resume(self, index: int, renews_first: bool) -> None:
        """A worker that stood still goes on; what is another's now it leaves as it is (G5)."""
        paused = [process for process in self.processes if process.alive and process.paused_at]
        self._resume(paused[index % len(paused)], renews_first)

    def _resume(self, process: Process, renews_first: bool) -> None:
        stale = [
            partition
            for partition, lane in process.lanes().items()
            if int(self.checks.lane(partition).get(b"epoch", 0)) > lane.epoch
        ]
        had_heir = any(self.checks.had_heir(p, lane.epoch) for p, lane in process.lanes().items())
        if process.is_in_call and had_heir:  # it cannot be recalled, which G5 says
            self._kill(process)
            return
        before = {partition: self.checks.written(partition) for partition in stale}
        if renews_first:
            process.renew()
        process.resume()
        after = {partition: self.checks.written(partition) for partition in stale}
        assert before == after, "a stale owner wrote"

    @rule(index=which, fate=st.sampled_from(FATES), rounds=st.integers(0, 2), point=which)
    def stall(self, index: int, fate: str, rounds: int, point: int) -> None:
        """A worker at work stands still for longer than its lease, and another takes over."""
        self.publish([(ROOTS[0], fate), *((root, "ok") for root in ROOTS)], sends=True)
        for _ in range(rounds):
            self._work(index, self._go_round)
        pause = (self.points[point % len(self.points)], 1)
        self._work(index, lambda process: process.turn(pause))
        self.holds()
        self.pass_some(LEASE + 1)
        heir = next((process for process in self.processes if process.running), None)
        if heir is not None:
            heir.wanted = frozenset(range(PARTITIONS))
            for _ in range(3):
                self.pass_some(1.0)
                self._go_round(heir)

    def _go_round(self, process: Process) -> None:
        """Turn, and make the calls that come of it."""
        process.turn()
        while process.in_flight:
            process.call(0)

    @rule(index=which)
    def kill(self, index: int) -> None:
        """A worker dies."""
        living = [process for process in self.processes if process.alive]
        if living:
            self._kill(living[index % len(living)])

    def _kill(self, process: Process) -> None:
        process.kill()
        self.deaths += 1

    @rule(index=which)
    def stop_renewing(self, index: int) -> None:
        """A worker's leases are renewed no more, or again; it works on."""
        living = [process for process in self.processes if process.alive]
        if living:
            process = living[index % len(living)]
            process.renews = not process.renews

    # -- time and misfortune ----------------------------------------------------------------------

    @rule(seconds=st.sampled_from([0.2, 1.0, 10.0, 40.0, LEASE + 1]))
    def pass_some(self, seconds: float) -> None:
        """Time passes; who can renews its leases meanwhile."""
        while seconds > 0:
            self.world.pass_time(min(seconds, LEASE / 5))
            seconds -= LEASE / 5
            for process in self.processes:
                if process.running:
                    process.renew()

    @rule()
    def outage(self) -> None:
        """The backend goes down, or comes up again."""
        self.backend.down = not self.backend.down

    @rule()
    def sync(self) -> None:
        """Redis writes to its disk."""
        self.world.sync()

    @rule(told=st.booleans())
    def lose_tail(self, told: bool) -> None:
        """Redis dies and comes back without what it had not written; the agent may not be told."""
        self.world.lose_tail(told=told)

    @rule(partition=st.integers(0, PARTITIONS - 1), less=st.integers(0, 2))
    def trim(self, partition: int, less: int) -> None:
        """What every lane has passed is trimmed, or most of it."""
        n = int(self.checks.lane(partition).get(b"n", 0))
        self.world.trim(partition, n - less)

    # -- what must hold ---------------------------------------------------------------------------

    @invariant()
    def holds(self) -> None:
        """See `helpers.model.model_checks`."""
        self.checks.now(self._losses())

    def _losses(self) -> int:
        """Count owners that died, or stood still until their lane was another's (a crash, G4)."""
        for process in self.processes:
            for partition, lane in process.lanes().items() if process.paused_at else ():
                if int(self.checks.lane(partition).get(b"epoch", 0)) > lane.epoch:
                    self.frozen.add((process.name, partition, lane.epoch))
        return self.deaths + len(self.frozen)

    def drain(self) -> None:
        """All is well again: nothing is missing, and a replay comes to the same (G8)."""
        self.backend.down = False
        for process in self.processes:
            if process.alive and process.paused_at:
                self._resume(process, renews_first=True)
            process.renews = True
        self._drain(self._started("live", self.backend), self.checks)
        self.checks.now(self._losses())
        self.checks.complete()
        self._replay()

    def _drain(self, heir: Process, checks: Checks) -> None:
        """Let an heir want everything, and others nothing, until everything is done."""
        for process in self.processes:
            process.wanted = frozenset()
        heir.wanted = frozenset(range(PARTITIONS))
        for _ in range(ROUNDS):
            self.world.send()
            self.world.tidy_spool()
            if not self.world.unsent and checks.is_done():
                return
            self.pass_some(20.0)
            heir.renew()
            for process in dict.fromkeys([*self.processes, heir]):
                if process.running:
                    self._go_round(process)
        raise AssertionError("it does not come to an end")

    def _replay(self) -> None:
        backend = Backend()
        checks = Checks(self.world, backend, "again", self.kind)
        self._drain(self._started("again", backend), checks)
        checks.now(0)
        checks.complete()

    def teardown(self) -> None:
        """Drain, unless something failed already; leave nothing behind."""
        try:
            if sys.exc_info()[0] is None:
                self.drain()
        finally:
            for process in self.all:
                process.end()
            self.world.close()
            shutil.rmtree(self.directory, ignore_errors=True)


def run(url: str, examples: int, steps: int) -> int:
    """Run the machine, and return how often it began.

    SHRINK=1 looks for minutes for a smaller form of what fails.
    """
    machine = type("Bus", (Bus,), {"url": url})
    shrink = (Phase.shrink,) if os.environ.get("SHRINK") == "1" else ()
    run_state_machine_as_test(
        machine,
        settings=hypothesis.settings(
            max_examples=examples,
            stateful_step_count=steps,
            phases=(Phase.generate, *shrink),
            suppress_health_check=list(hypothesis.HealthCheck),
        ),
    )
    return machine.begun


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_bus_keeps_its_word_whatever_comes(make_redis):
    """G1 to G6, G8: whatever comes in whatever order, nothing is lost, doubled or out of order."""
    run(make_redis().url, examples=60, steps=40)


@pytest.mark.fault
@pytest.mark.timeout(7_200)
@pytest.mark.skipif(scale.QUICK, reason="the long form is for the full run")
def test_the_bus_keeps_its_word_for_long(make_redis, report):
    """G1 to G6, G8: the same, two thousand times, fifty steps each."""
    report(faults=run(make_redis().url, examples=scale.times(2_000), steps=50))
