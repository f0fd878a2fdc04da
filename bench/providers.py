"""Providers that do as little as can be: what is measured is the bus around them.

Named in the settings as ``bench.providers:NoopProvider`` and the like; the worker process finds
them because the repository's root is on its path.
"""

import os
import re
import sqlite3
import time
from collections import Counter
from contextlib import AbstractContextManager
from typing import ClassVar

import msgspec
from calls import Calls
from memorybus.events import TurnCompleted
from memorybus_providers import ledger
from memorybus_providers.base import (
    Capabilities,
    Delivery,
    Fence,
    HookContext,
    MemoryProvider,
    Progress,
    ProviderConfig,
    Transaction,
    TransactionalProvider,
)
from memorybus_providers.holographic import HolographicProvider
from tally import Tally

OPENED = "opened"
"""The file in a provider's home that holds the wall time of its opening, in milliseconds."""

STAMPS = "stamps"
"""The file in a provider's home that holds, for each applied turn, ordinal and wall time (ns)."""

TALLIES = "tallies"
"""The directory in a provider's home that holds a `Tally` for each process that served it."""

CALLS = "calls"
"""The file in a provider's home that holds its calls, see `Calls`."""

SLOW_SECONDS = 0.020
"""Seconds that a slow provider takes for a call."""

ROWS = """
create table if not exists turns(
    id blob not null, session text not null, at integer not null, user text not null,
    assistant text not null);
"""
INSERT = "insert into turns values (?, ?, ?, ?, ?)"

_TURNS = Capabilities(recall=False, handles=frozenset({TurnCompleted}))


def connect(path: str) -> sqlite3.Connection:
    """Open a database of rows, with the pragmas that provider and floor share."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("pragma journal_mode = wal")
    db.execute("pragma synchronous = normal")
    db.executescript(ROWS)
    return db


def _tell_opening(config: ProviderConfig) -> None:
    config.home.mkdir(parents=True, exist_ok=True)
    (config.home / OPENED).write_text(str(time.time_ns() // 1_000_000))


class Stamps:
    """The file `STAMPS` of an instance, unbuffered: ordinal and time of each turn, 8 bytes each."""

    def __init__(self, config: ProviderConfig) -> None:
        """Open it."""
        config.home.mkdir(parents=True, exist_ok=True)
        self._file = (config.home / STAMPS).open("ab", buffering=0)

    def note(self, event: TurnCompleted) -> None:
        """Append a turn."""
        now = time.time_ns()
        self._file.write(event.ordinal.to_bytes(8, "big") + now.to_bytes(8, "big"))

    def close(self) -> None:
        """Close it."""
        self._file.close()


class NoopProvider(MemoryProvider):
    """Takes turns and does nothing."""

    kind: ClassVar[str] = "noop"
    delivery: ClassVar[Delivery] = "keyed"
    capabilities: ClassVar[Capabilities] = _TURNS

    def open(self) -> None:
        """Write down when."""
        _tell_opening(self.config)

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Do nothing."""


class PastProvider(NoopProvider):
    """Takes turns and does nothing; what reads the archive is loaded before its clock runs."""

    kind: ClassVar[str] = "past"

    def open(self) -> None:
        """Load it, then write down when."""
        import pyarrow.parquet  # noqa: F401

        super().open()


class RowProvider(TransactionalProvider):
    """Writes one SQLite row per turn, with the shipped ledger."""

    kind: ClassVar[str] = "row"
    capabilities: ClassVar[Capabilities] = _TURNS

    def open(self) -> None:
        """Open the database, and write down when that was done."""
        self.config.home.mkdir(parents=True, exist_ok=True)
        self._db = connect(str(self.config.home / "rows.db"))
        ledger.migrate(self._db)
        self._ledger = ledger.Ledger(self._db)
        _tell_opening(self.config)

    def progress(self, lane: str) -> Progress | None:
        """See `ledger.progress`."""
        return ledger.progress(self._db, lane)

    def transaction(self, fence: Fence) -> AbstractContextManager[Transaction]:
        """See `ledger.Ledger.transaction`."""
        return self._ledger.transaction(fence)

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Insert the row."""
        self._db.execute(
            INSERT,
            (bytes.fromhex(ctx.event_id), ctx.session.id, ctx.at, event.user, event.assistant),
        )

    def shutdown(self) -> None:
        """Close the database."""
        self._db.close()


class OpenedHolographic(HolographicProvider):
    """The shipped provider, which also writes down when it was open."""

    def open(self) -> None:
        """Open, and write down when that was done."""
        super().open()
        _tell_opening(self.config)


class StampedHolographic(HolographicProvider):
    """The shipped provider, which also writes down when each turn was applied."""

    def open(self) -> None:
        """Open, the file unbuffered."""
        super().open()
        self._stamps = Stamps(self.config)

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Apply, and stamp."""
        super().sync_turn(event, ctx)
        self._stamps.note(event)

    def shutdown(self) -> None:
        """Close both."""
        super().shutdown()
        self._stamps.close()


class TallyProvider(MemoryProvider):
    """Counts turns, in a file of the home named for its process."""

    kind: ClassVar[str] = "tally"
    delivery: ClassVar[Delivery] = "keyed"
    capabilities: ClassVar[Capabilities] = _TURNS

    def open(self) -> None:
        """Begin to count."""
        self._tally = Tally(self.config.home / TALLIES / str(os.getpid()))

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Count."""
        self._tally.hit()


class ComputingProvider(TallyProvider):
    """Counts each turn's words, as a backend that indexes text does: some 0.05 ms of computing."""

    kind: ClassVar[str] = "computing"

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Compute, and count."""
        words = re.findall(r"\w+", f"{event.user} {event.assistant}".lower())
        Counter(words).most_common(3)
        self._tally.hit()


class SlowProvider(TallyProvider):
    """Takes 20 ms for each turn, as a remote backend does, and may be called from many threads."""

    kind: ClassVar[str] = "slow"
    capabilities: ClassVar[Capabilities] = msgspec.structs.replace(_TURNS, concurrent=True)

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Wait, and count."""
        time.sleep(SLOW_SECONDS)
        self._tally.hit()


class HoldProvider(MemoryProvider):
    """Never returns from its first call: whoever is asked second applies the turn."""

    kind: ClassVar[str] = "hold"
    delivery: ClassVar[Delivery] = "keyed"
    capabilities: ClassVar[Capabilities] = _TURNS

    def open(self) -> None:
        """Find the file of calls."""
        self.config.home.mkdir(parents=True, exist_ok=True)
        self._calls = Calls(self.config.home / CALLS)

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Write down the call; hold the first one."""
        self._calls.hold_first()


class StampProvider(MemoryProvider):
    """Writes down when each turn was applied."""

    kind: ClassVar[str] = "stamp"
    delivery: ClassVar[Delivery] = "keyed"
    capabilities: ClassVar[Capabilities] = _TURNS

    def open(self) -> None:
        """Open the file."""
        self._stamps = Stamps(self.config)

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Stamp."""
        self._stamps.note(event)

    def shutdown(self) -> None:
        """Close the file."""
        self._stamps.close()
