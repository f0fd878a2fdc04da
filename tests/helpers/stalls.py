"""When the machine stood still: what a measurement may not take for the doing of what it measures.

``python -m helpers.stalls FILE`` sleeps for moments, and notes in the file each that took far too
long. It is a process of its own, which shares no lock with what is measured.
"""

import sys
import threading
from pathlib import Path

import msgspec
from memorybus.clock import SYSTEM

from helpers.processes import Spawn

TICK = 0.005
LATE = 0.03
"""Seconds that a moment must be too long: cores that others use cost less than that."""


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
        """Start it."""
        self._path = directory / "stalls"
        tests = Path(__file__).parents[1]
        self._child = spawn("-m", "helpers.stalls", self._path, env={"PYTHONPATH": str(tests)})
        self._child.wait_output("looking")

    def stalls(self) -> list[Stall]:
        """Return those that were noted so far."""
        assert self._child.alive, self._child.output()
        lines = self._path.read_text().rpartition("\n")[0].splitlines()
        return [Stall(*map(int, line.split())) for line in lines]

    def stood(self, *times: range) -> float:
        """Return for how many seconds the machine stood still in some times."""
        stalls = self.stalls()
        return sum(s.within(one) for s in stalls for one in times) / 1_000


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
