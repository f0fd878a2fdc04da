"""Who is told of what, and when: once when it begins, once when it is over."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.config.notify import Notify
from memorybus.health.finding import Finding
from memorybus.notify.incidents import (
    MAX_FINDINGS,
    Incidents,
    drop_other_channels,
    find_due,
    note_reported,
    update_incidents,
    worst_state,
)

RULES = Notify(url="http://h/", after=60, again=3600)
DOWN = Finding("failing", "critical", "p", "p waits", "mend it")
LATE = Finding("behind", "warning", "q", "q is late", "more workers")


class Story:
    """Looks at findings as time goes by, and tells one channel at once."""

    def __init__(self, rules: Notify = RULES) -> None:
        """Begin."""
        self.rules = rules
        self.now = 1_700_000_000_000
        self.known: Incidents = ()
        self.heard: list[str] = []

    def report(self, *findings: Finding, after: float = 0, taken: bool = True) -> list[str]:
        """Wait and report; return what was told, as ``+code``, ``=code`` and ``-code``."""
        self.now += round(after * 1000)
        self.known = update_incidents(self.known, findings, self.rules, self.now)
        told = find_due(self.known, "webhook", self.rules, self.now)
        if taken:
            self.known = note_reported(self.known, "webhook", told, self.now)
        parts = {"+": told.began, "=": told.still, "-": told.ended}
        said = [f"{sign}{one.finding.code}" for sign, part in parts.items() for one in part]
        self.heard += said if taken else []
        return said


def test_a_finding_is_told_once_after_its_grace_and_once_when_it_is_over() -> None:
    """G10: neither a blink of an alarm nor a blink of its absence is told."""
    story = Story()
    assert story.report(DOWN) == []
    assert story.report(DOWN, after=59) == []
    assert story.report(DOWN, after=1) == ["+failing"]
    assert story.report(DOWN, after=600) == []
    assert story.report(after=5) == []
    assert story.report(after=59) == []
    assert story.report(after=1) == ["-failing"]
    assert story.report(after=600) == []
    assert story.known == ()


def test_what_flaps_is_one_incident() -> None:
    """G10: a finding that comes and goes within the grace is told once, and not as over."""
    story = Story()
    for turn in range(100):
        story.report(*([DOWN] if turn % 2 == 0 else []), after=30)
    assert story.heard == ["+failing"]


def test_what_is_still_wrong_is_told_again_together() -> None:
    """G10: reminders come with each other, after `again`; none if that is 0."""
    story = Story()
    story.report(DOWN)
    story.report(DOWN, LATE, after=60)
    assert story.report(DOWN, LATE, after=60) == ["+behind"]
    assert story.report(DOWN, LATE, after=3540) == ["=failing", "=behind"]
    assert story.report(DOWN, LATE, after=3599) == []
    silent = Story(msgspec.structs.replace(RULES, again=0))
    silent.report(DOWN)
    silent.report(DOWN, after=60)
    assert silent.report(DOWN, after=1e6) == []


def test_what_becomes_worse_is_told_and_what_becomes_better_is_not() -> None:
    """G10: a warning that was told and turns critical is news."""
    story = Story()
    bad = msgspec.structs.replace(LATE, severity="critical")
    story.report(LATE)
    assert story.report(LATE, after=60) == ["+behind"]
    assert story.report(bad, after=1) == ["+behind"]
    assert story.report(LATE, after=1) == []
    assert story.report(bad, after=1) == []


def test_only_what_is_bad_enough_is_told() -> None:
    """G10: who wants to be woken for critical findings only is told of no others."""
    story = Story(msgspec.structs.replace(RULES, severity="critical", after=0))
    assert story.report(DOWN, LATE) == ["+failing"]


def test_a_channel_that_was_away_is_told_what_is_not_what_was() -> None:
    """G10: nothing piles up for a webhook that does not answer, and nothing is missed for good."""
    story = Story()
    story.report(DOWN)
    assert story.report(DOWN, after=60, taken=False) == ["+failing"]
    assert story.report(DOWN, LATE, after=60, taken=False) == ["+failing"]
    assert story.report(LATE, after=60, taken=False) == ["+behind"]
    assert story.report(LATE, after=60) == ["+behind"]
    assert story.report(LATE, after=600) == []


def test_each_channel_is_told_by_itself() -> None:
    """G10: one that fails keeps no other from being told; one that is no more is forgotten."""
    story = Story()
    story.report(DOWN)
    story.report(DOWN, after=60)
    other = find_due(story.known, "command", RULES, story.now)
    assert [one.finding.code for one in other.began] == ["failing"]
    (known,) = drop_other_channels(story.known, ["command"])
    assert dict(known.reports) == {}


def test_an_incident_keeps_its_name() -> None:
    """G10: who is told twice, since a reporter was killed, can tell that it is the same."""
    story = Story()
    story.report(DOWN)
    before = story.known[0].id
    grown = msgspec.structs.replace(DOWN, text="p waits for longer", severity="warning")
    story.report(grown, after=60)
    assert story.known[0].id == before
    story.report(after=1)
    story.report(after=60)
    story.report(DOWN, after=1)
    assert story.known[0].id != before


def test_a_time_in_which_nobody_looked_is_no_end() -> None:
    """G10: after Redis was away, one look without a finding does not tell that it is over."""
    story = Story(msgspec.structs.replace(RULES, again=0))
    story.report(DOWN)
    story.report(DOWN, after=60)
    assert story.report(after=100_000) == []
    assert story.report(DOWN, after=5) == []


def test_what_is_kept_track_of_is_bounded() -> None:
    """G10: of more findings than can be told, the critical ones are."""
    many = [Finding("lane_halted", "warning", f"p{n}", "x", "y") for n in range(2 * MAX_FINDINGS)]
    story = Story()
    story.report(*many, DOWN)
    assert len(story.known) == MAX_FINDINGS
    assert story.known[0].finding == DOWN
    assert worst_state(story.known) == "CRITICAL"


_FINDINGS = st.lists(st.sampled_from([DOWN, LATE]), unique=True)


@given(st.lists(st.tuples(_FINDINGS, st.integers(1, 200), st.booleans()), max_size=60))
def test_begin_and_end_take_turns_whatever_happens(
    steps: Sequence[tuple[list[Finding], int, Any]],
) -> None:
    """G10: of each finding a channel hears begin, end, begin, end, and the last word is true."""
    story = Story(msgspec.structs.replace(RULES, again=0))
    for findings, pause, taken in steps:
        story.report(*findings, after=pause, taken=taken)
    last = steps[-1][0] if steps else []
    for _ in range(3):
        story.report(*last, after=60)
    for one in (DOWN, LATE):
        heard = [said[0] for said in story.heard if said[1:] == one.code]
        assert heard == [sign for sign, _ in zip("+-" * len(heard), heard, strict=False)]
        assert (heard[-1:] == ["+"]) is (one in last)


@pytest.mark.parametrize(("found", "state"), [((), "OK"), ((LATE,), "WARNING")])
def test_the_state_is_that_of_the_worst(found: tuple[Finding, ...], state: str) -> None:
    """G10: the state is the one that `memorybus check` would name."""
    story = Story()
    story.report(*found)
    assert worst_state(story.known) == state
