"""The days in a block are those of the setting."""

from zoneinfo import ZoneInfo

from helpers.making import MakeSettings
from memorybus.recall.model import RecallRequest
from memorybus.testing import FakeClock
from memorybus_providers.base import (
    Recollection,
)
from memorybus_workers.hosting.instances import make_instance
from memorybus_workers.jobs.prefetch import render

LATE = 1_795_656_600_000
"""2026-11-26, 1:30 UTC: in New York it is the evening before."""


def test_a_line_shows_the_day_that_it_was_where_the_person_is() -> None:
    """What was said in the evening bears that evening's date."""
    want = RecallRequest("When?", "agent", "ann", "", 500)
    found = [Recollection(text="Tea is at five", at=LATE, until=LATE + 1)]
    for zone, day in (("America/New_York", "2026-11-25"), ("UTC", "2026-11-26")):
        shown = render(found, want, "p", zone=ZoneInfo(zone)).lines
        assert shown == (f"- [{day}; until {day}] Tea is at five",)


def test_a_provider_knows_the_zone_of_the_settings(make_settings: MakeSettings) -> None:
    """The instance of a worker reads times by the zone that is set."""
    settings = make_settings(providers=("holographic",), timezone="America/New_York")
    made = make_instance(settings, "holographic", FakeClock())
    assert made.config.zone == ZoneInfo("America/New_York")
