"""What a spool has on the disk when it says so: a power loss takes nothing of that."""

from typing import Any

from helpers.processes.synced import note_syncs
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.ids import new_id
from memorybus.outbox.files import SpoolFiles
from memorybus.outbox.spool import DELIVERED_SUFFIX, PossiblyDelivered, Spool

LEVEL = "pragma synchronous = "


def levels(statements: list[str]) -> list[str]:
    """Return for each event that was stored how far its commit was synced; pure."""
    level, found = "normal", []
    for statement in map(str.lower, statements):
        if statement.startswith(LEVEL):
            level = statement.removeprefix(LEVEL)
        elif statement.startswith("insert into events"):
            found.append(level)
    return found


def test_a_durable_event_is_synced_before_it_is_accepted(tmp_path):
    """G1: with `durable` the commit itself waits for the disk; the events around it need not."""
    files = SpoolFiles(tmp_path, new_id, clock=SYSTEM, max_bytes=1 << 20, disk_reserve=0)
    spool = files.claim()
    statements: list[str] = []
    spool._in.set_trace_callback(statements.append)
    for number, durable in enumerate((False, True, False)):
        spool.append(0, number.to_bytes(16, "big"), b"d" * 8, b"x", durable=durable)
    spool._in.set_trace_callback(None)
    assert levels(statements) == ["normal", "full", "normal"]
    assert spool._in.execute("pragma journal_mode").fetchone() == ("wal",)
    spool.close()


def test_what_leaves_the_context_window_is_durable(make_settings, monkeypatch):
    """G1: all events of a compression are synced, since the agent forgets what they carry."""
    append = Spool.append
    asked: list[bool] = []

    def noted(self: Spool, *row: Any, durable: bool = False) -> int:
        asked.append(durable)
        return append(self, *row, durable=durable)

    monkeypatch.setattr(Spool, "append", noted)
    with MemoryBus.connect(make_settings(url="redis://127.0.0.1:1/0")) as bus:
        session = bus.session("s", warm=False)
        session.turn_completed("hello", "ok")
        assert not any(asked)
        asked.clear()
        session.compressing([{"role": "user", "content": "about to go"}])
    assert asked
    assert all(asked)


def test_rows_are_announced_on_the_disk_before_they_are_sent(tmp_path, monkeypatch):
    """G4: after a power loss the next owner knows which rows Redis may have."""
    delivered = PossiblyDelivered(tmp_path / "spool.db", 0, empty=True)
    syncs = note_syncs(monkeypatch)
    delivered.announce(7)
    (sync,) = syncs
    assert sync.path == (tmp_path / "spool.db").with_suffix(DELIVERED_SUFFIX)
    assert int(sync.data) >= 7
