"""When the machine stood still: what a measurement may not take for the doing of what it measures.

``python -m helpers.processes.stalls FILE`` sleeps for moments, and notes in the file each that took
far too long. It is a process of its own, which shares no lock with what is measured.
"""

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from memorybus.clock import SYSTEM

from helpers.processes.processes import Spawn
from helpers.processes.waiting import still, wait_until

T = TypeVar("T")

TICK = 0.005
LATE = 0.03
"""Seconds that a moment must be too long: cores that others use cost less than that."""

MARGIN = 0.5
"""Seconds after its deadline in which a call that keeps it has returned: its thread has to get a
core that others use. What the machine stood still does not count (see `Witness.timed`)."""

STANDSTILL = 3.0
"""Seconds that a machine may stand still, where nobody can tell by how much it did."""


class Stall(msgspec.Struct, frozen=True):
    """A time in which nothing went on, in milliseconds of wall time."""

    begin: int
    end: int

    @property
    def ms(self) -> int:
        """How long it was."""
        return self.end - self.begin

    def within(self, time: range) -> int:
        """Return how much of it, in milliseconds, lies in a time."""
        return max(0, min(self.end, time.stop) - max(self.begin, time.start))

    def touches(self, begin: int, end: int) -> bool:
        """Whether it was felt in a time: what it held up is worked off in as long again."""
        return begin <= self.end + self.ms and end >= self.begin


class Witness:
    """A process that notes the stalls, as long as the test lasts."""

    def __init__(self, spawn: Spawn, directory: Path) -> None:
        self._path = directory / "stalls"
        tests = Path(__file__).parents[2]
        self._child = spawn(
            "-m", "helpers.processes.stalls", self._path, env={"PYTHONPATH": str(tests)}
        )
        self._child.wait_output("looking")

    def stalls(self) -> list[Stall]:
        """Return those that were noted so far."""
        assert self._child.alive, self._child.output()
        lines = self._path.read_text().rpartition("\n")[0].splitlines()
        return [Stall(*map(int, line.split())) for line in lines]

    def timed(self, act: Callable[[], T]) -> tuple[T, float]:
        """Do something; return what it returns, and its seconds without standstills."""
        begin, begun_ms = SYSTEM.monotonic(), SYSTEM.now_ms()
        result = act()
        took = SYSTEM.monotonic() - begin
        wait_until(still(lambda: None, TICK + LATE), "a stall at the end is noted")
        return result, took - self.stood(range(begun_ms, begun_ms + round(1_000 * took)))

    def stood(self, *times: range) -> float:
        """Return for how many seconds the machine stood still in some times."""
        stalls = self.stalls()
        return sum(s.within(one) for s in stalls for one in times) / 1_000


@pytest.fixture
def witness(spawn: Spawn, tmp_path: Path) -> Witness:
    """Return a process that notes when the machine stands still."""
    return Witness(spawn, tmp_path)


def main() -> None:
    """Look until killed."""
    nothing = threading.Event()
    with Path(sys.argv[1]).open("w", buffering=1) as file:
        sys.stdout.write("looking\n")
        sys.stdout.flush()
        while True:
            begin, begun_ms = SYSTEM.monotonic(), SYSTEM.now_ms()
            nothing.wait(TICK)
            late = SYSTEM.monotonic() - begin - TICK
            if late > LATE:
                file.write(f"{begun_ms} {begun_ms + round(1_000 * (TICK + late))}\n")


if __name__ == "__main__":
    main()
