"""The transactional applier's own bookkeeping."""

from typing import cast

import pytest
from memorybus.errors import LeaseLost
from memorybus.log.entry import LoggedEvent
from memorybus_workers.apply.serial import ChunkOutcome
from memorybus_workers.apply.transactional import TransactionalApplier
from memorybus_workers.calls.retry import TryVerdict
from memorybus_workers.lanes.lane import Lane


class Losing(TransactionalApplier):
    """Loses its lane in the midst of a batch that goes one by one."""

    def __init__(self) -> None:
        self._whole = False

    def _try(self, lane: Lane, event: LoggedEvent) -> TryVerdict:
        assert self._whole
        raise LeaseLost("another has it")


def test_a_lane_that_is_lost_leaves_the_next_one_careful():
    """G3: that everything below an event is done was true of the lost lane, not of the next one."""
    applier = Losing()
    window = type("Window", (), {"idle": True})
    lane = cast("Lane", type("Held", (), {"window": window}))
    with pytest.raises(LeaseLost):
        applier._try_one_by_one(lane, [cast("LoggedEvent", None)], ChunkOutcome(set(), {}))
    assert not applier._whole
