"""What a worker says of a collector that is away."""

import logging

from memorybus_workers.processes.exporting import RareLinesFilter


def test_a_collector_that_is_away_is_no_flood(fake_clock):
    """Of what the SDK says at each try, one line in five minutes passes."""
    seldom, line = RareLinesFilter(fake_clock), logging.makeLogRecord({})
    assert [seldom.filter(line) for _ in range(3)] == [True, False, False]
    fake_clock.advance(299)
    assert not seldom.filter(line)
    fake_clock.advance(1)
    assert seldom.filter(line)
