"""The walk of an event, from a session to the spool's insert: bounded, so that it stays short."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.walks import walk_of
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.config.settings import Settings
from memorybus.tracing.spans import TRACING_API

INSERT = "memorybus.outbox.spool:Spool._next_sequence"
"""The last function of ours before SQLite inserts the row; it asks the clock once."""


@pytest.fixture(name="session")
def _session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.delitem(sys.modules, TRACING_API, raising=False)  # as in most agents' processes
    gone = Settings(data_dir=tmp_path, url=f"unix://{tmp_path}/gone.sock")
    with MemoryBus.connect(gone) as bus:
        session = bus.session("s", warm=False)
        session.turn_completed("hello", "hi")  # first: what is made once per session or process
        yield session


@pytest.mark.parametrize(
    "publish",
    [
        lambda session: session.turn_completed("I live in Oslo", "Noted.", model="m"),
        lambda session: session.turn_completed("I live in Oslo", "Noted.", ordinal=7),
    ],
    ids=["new_id", "derived_id"],
)
def test_a_turn_reaches_the_spool_in_few_calls(session, publish):
    """G9: from `turn_completed` to the spool's insert are at most 12 calls through 6 modules."""
    calls = walk_of(lambda: publish(session)).calls
    way = [call for call in calls[: calls.index(INSERT) + 2] if call.startswith("memorybus.")]
    assert way[-1].endswith("now_ms")
    assert len(way) <= 12, way
    assert len({call.partition(":")[0] for call in way}) <= 6, way
