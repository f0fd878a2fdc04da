"""When an event that is tried alone is not tried again."""

import pytest
from memorybus_workers.lanes.isolated_try import (
    MAX_KILLS,
    TooManyKills,
    TryBegun,
    judge_isolated_try,
)


@pytest.mark.parametrize("kills", range(MAX_KILLS))
def test_an_event_is_tried_while_it_may_be_innocent(kills: int) -> None:
    """G6: a worker may end by chance while an event is tried, so one death does not convict it."""
    assert judge_isolated_try(kills + 1) == TryBegun()


@pytest.mark.parametrize("kills", [MAX_KILLS, MAX_KILLS + 3])
def test_an_event_that_ended_too_many_workers_is_not_tried(kills: int) -> None:
    """G6: the verdict says how many workers the event ended."""
    assert judge_isolated_try(kills + 1) == TooManyKills(kills)
