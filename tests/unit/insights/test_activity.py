"""Days, weekdays and hours of insights."""

from zoneinfo import ZoneInfo

import pytest
from memorybus.events import LATEST
from memorybus.insights.activity import QUARTER, activity_of, days_of


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_a_turn_at_the_end_of_the_calendar_counts(zone):
    """The latest time that an event may have is counted in any zone."""
    quarters = [(LATEST // QUARTER, 1, 0)]
    assert list(activity_of(quarters, ZoneInfo(zone)).days.values()) == [1]
    assert [day.asked for day in days_of(quarters, ZoneInfo(zone))] == [1]
