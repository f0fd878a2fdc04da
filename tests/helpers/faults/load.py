"""The load of the fault suite: a process that publishes and keeps a journal of its receipts.

``python -m helpers.faults.load --journal /path --rate 2000`` publishes turns of many sessions until
SIGTERM. A line goes to the journal only after `publish` has returned and, for a higher level, after
`flush` has confirmed it; the journal is fsynced before the next group begins. On SIGTERM it waits
for the log, prints one JSON object of what it did, and ends. It ends in the same way when the test
run that started it is gone.
"""

import argparse
import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import msgspec
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.clock import SYSTEM
from memorybus.concurrency.wakeup import StopSignal
from memorybus.config.settings import load
from memorybus.errors import MemoryBusError
from memorybus.receipt import Level

from helpers.faults.oracle import Receipt
from helpers.processes.processes import Child

REFUSED = "refused"
"""What the writer says, with the error's name, when it is refused for the first time."""

TICK = 0.01
_SMALLEST, _LARGEST = 200, 4096
RATE = 2_000
_CATCH_UP = 20
"""A writer that was held up offers so many ticks' events at once, no more."""
LARGEST_GROUP = int(_CATCH_UP * TICK * RATE)
"""So many events, at that rate, a writer may have published without their receipts."""
_WORDS = ("ladder", "garden", "shed", "behind", "rain", "May", "Ann", "leans", "left", "the")


class Done(msgspec.Struct, frozen=True):
    """What a writer says at its end; `refused` counts typed refusals by the error's name."""

    accepted: int
    refused: dict[str, int]
    flushed: bool
    rate: float
    counters: dict[str, Any]


class Writer:
    """Publishes group by group; a group is journalled before the next."""

    def __init__(self, bus: MemoryBus, options: argparse.Namespace) -> None:
        self._bus = bus
        self._options = options
        self._rng = random.Random(options.seed)
        self._sessions: list[Session] = []
        self._next = [0] * options.sessions
        self.accepted = 0
        self.refused: Counter[str] = Counter()
        self._journal = os.open(options.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def run(self, told: StopSignal, parent: int) -> float:
        """Offer events until told to end; return the rate that was offered, per second.

        A test run that is killed cannot tell it. Its writer has another parent then, and ends, too.

        Args:
            told: tells it to end.
            parent: the id of the process that started it.
        """
        begin = last = SYSTEM.monotonic()
        offered = owed = 0.0
        while not told.is_set() and os.getppid() == parent:
            told.wait(last + TICK - SYSTEM.monotonic())
            now = SYSTEM.monotonic()
            owed = min(owed + (now - last) * self._options.rate, _CATCH_UP * self._group)
            last = now
            size = int(owed)
            owed -= size
            offered += size
            self._publish_group(size)
        return offered / max(TICK, SYSTEM.monotonic() - begin)

    @property
    def _group(self) -> float:
        return float(self._options.rate * TICK)

    def _publish_group(self, size: int) -> None:
        receipts = [r for r in (self._publish_one() for _ in range(size)) if r is not None]
        level = self._options.level
        if receipts and level != "spooled" and not self._bus.flush(level, 30):
            self.refused["unconfirmed"] += len(receipts)
            level = "spooled"
        lines = "".join(f"{r.event_id} {r.session} {r.ordinal} {level}\n" for r in receipts)
        if lines:
            os.write(self._journal, lines.encode())
            os.fsync(self._journal)
        self.accepted += len(receipts)

    def _publish_one(self) -> Receipt | None:
        which = self._rng.randrange(self._options.sessions)
        try:
            session = self._session(which)
            ordinal = self._next[which]
            receipt = session.turn_completed(self._text(ordinal), "ok", ordinal=ordinal)
        except MemoryBusError as error:
            self._refuse(type(error).__name__)
            return None
        self._next[which] += 1
        return Receipt(receipt.event_id, session.id, ordinal)

    def _refuse(self, name: str) -> None:
        """Count a refusal; say the first of each kind at once, for who waits for it."""
        if name not in self.refused:
            sys.stdout.write(f"{REFUSED} {name}\n")
            sys.stdout.flush()
        self.refused[name] += 1

    def _session(self, which: int) -> Session:
        while len(self._sessions) <= which:
            name = f"{self._options.prefix}{len(self._sessions)}"
            self._sessions.append(self._bus.session(name, warm=False))
        return self._sessions[which]

    def _text(self, ordinal: int) -> str:
        """Return words of a size between the bounds, small ones more often than large ones."""
        size = int(_SMALLEST * (_LARGEST / _SMALLEST) ** self._rng.random())
        words = " ".join(self._rng.choices(_WORDS, k=size // 5))
        return f"{ordinal} {words}"


class Load:
    """A running writer, as the test sees it.

    Attributes:
        child: the process.
    """

    def __init__(self, child: Child, journal: Path) -> None:
        self.child = child
        self._journal = journal

    @property
    def flows(self) -> bool:
        """Whether anything was accepted yet."""
        assert self.child.alive, f"the writer ended: {self.child.output()[-2000:]}"
        return self._journal.exists() and self._journal.stat().st_size > 0

    def wait_refused(self, error: type[Exception]) -> None:
        """Wait until `publish` has raised an error for the first time."""
        self.child.wait_output(f"{REFUSED} {error.__name__}\n", 60)

    def receipts(self) -> list[Receipt]:
        """Return the journal's whole lines."""
        if not self._journal.exists():
            return []
        lines = self._journal.read_text().rpartition("\n")[0].splitlines()
        rows = (line.split(" ") for line in lines)
        return [Receipt(row[0], row[1], int(row[2]), row[3]) for row in rows]

    def stop(self, timeout: float = 60.0) -> Done:
        """Let it wait for the log and end; return what it says."""
        code = self.child.terminate(timeout)
        assert code == 0, f"the writer ended with {code}: {self.child.output()[-2000:]}"
        (said,) = [line for line in self.child.output().splitlines() if line.startswith("{")]
        return msgspec.json.decode(said, type=Done)


def main() -> None:
    """Publish until SIGTERM."""
    parent = os.getppid()
    options = _parser().parse_args()
    told = StopSignal()  # a `threading.Event` that the thread which waits for it sets locks it up
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    bus = MemoryBus.connect(load())
    writer = Writer(bus, options)
    rate = writer.run(told, parent)
    flushed = bus.flush("logged", options.flush)
    counters: dict[str, Any] = msgspec.to_builtins(bus.counters)
    done = Done(writer.accepted, dict(writer.refused), flushed, rate, counters)
    sys.stdout.buffer.write(msgspec.json.encode(done) + b"\n")
    sys.stdout.flush()
    bus.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--journal", required=True)
    parser.add_argument("--sessions", type=int, default=64)
    parser.add_argument("--rate", type=float, default=RATE, help="events per second, in total")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prefix", default="s")
    parser.add_argument("--level", choices=get_args(Level), default="spooled")
    parser.add_argument("--flush", type=float, default=60, help="seconds to wait for the log")
    return parser


if __name__ == "__main__":
    main()
