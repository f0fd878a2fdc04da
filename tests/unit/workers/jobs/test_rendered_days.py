"""The days in a block are those of the setting."""

from zoneinfo import ZoneInfo

import pytest
from memorybus.recall.model import RecallRequest
from memorybus.testing import FakeClock
from memorybus.text.fence import build_block
from memorybus_providers.base import (
    Recollection,
)
from memorybus_workers.hosting.instances import make_instance
from memorybus_workers.jobs.prefetch import render

LATE = 1_795_656_600_000
"""2026-11-26, 1:30 UTC: in New York it is the evening before."""


def test_a_line_shows_the_day_that_it_was_where_the_person_is():
    """What was said in the evening bears that evening's date."""
    want = RecallRequest("When?", "agent", "ann", "", 500)
    found = [Recollection(text="Tea is at five", at=LATE, until=LATE + 1)]
    for zone, day in (("America/New_York", "2026-11-25"), ("UTC", "2026-11-26")):
        shown = render(found, want, "p", zone=ZoneInfo(zone)).lines
        assert shown == (f"- [{day}; until {day}] Tea is at five",)


def test_a_provider_knows_the_zone_of_the_settings(make_settings):
    """The instance of a worker reads times by the zone that is set."""
    settings = make_settings(providers=("holographic",), timezone="America/New_York")
    made = make_instance(settings, "holographic", FakeClock())
    assert made.config.zone == ZoneInfo("America/New_York")


LONG = "quokka " * 800


@pytest.mark.parametrize("others", [0, 1])
def test_a_long_memory_is_cut_and_names_its_event(others):
    """A memory longer than the block is shown in part, with the command that shows all of it."""
    want = RecallRequest("Where?", "agent", "ann", "", 2_000)
    found = [Recollection(text=LONG, event="0a1b"), Recollection(text="Tea is at five")]

    lines = render(found, want, "p").lines
    block = build_block([("p", lines), *[("q", lines)] * others], 2_000)

    assert block.count("[all of it: memorybus events get 0a1b] quokka quokka") == 1
    assert block.count("…\n") == 1
    assert 1_900 < len(block) <= 2_000


def test_too_little_of_a_memory_is_not_shown():
    """A shorter memory takes the room that would show too little of a longer one."""
    want = RecallRequest("Where?", "agent", "ann", "", budget=150)
    found = [Recollection(text=LONG), Recollection(text="Tea is at five")]

    assert render(found, want, "p").lines == ("- Tea is at five",)
