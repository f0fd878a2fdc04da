"""Days, weekdays and hours in a time zone; pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, tzinfo

from memorybus.events import LATEST
from memorybus.insights.report import Activity, RecallDay

QUARTER = 900_000
"""Milliseconds of a quarter of an hour: every zone's offset is a multiple of it."""


def moment_of(at: int, zone: tzinfo) -> datetime:
    """Return a time in milliseconds in a zone; at most a day before the end of the calendar."""
    return datetime.fromtimestamp(min(max(at, 0), LATEST - 86_400_000) / 1000, zone)


def activity_of(quarters: Iterable[tuple[int, int, int]], zone: tzinfo) -> Activity:
    """Return the activity of quarters of an hour, with their turns and new sessions."""
    turns = [[0] * 24 for _ in range(7)]
    sessions = [[0] * 24 for _ in range(7)]
    days: dict[str, int] = {}
    for quarter, talked, began in quarters:
        moment = moment_of(quarter * QUARTER, zone)
        turns[moment.weekday()][moment.hour] += talked
        sessions[moment.weekday()][moment.hour] += began
        if talked:
            day = moment.date().isoformat()
            days[day] = days.get(day, 0) + talked
    hours = [sum(column) for column in zip(*turns, strict=True)]
    return Activity(
        turns=turns,
        sessions=sessions,
        days=dict(sorted(days.items())),
        active_days=len(days),
        streak=streak_of(days),
        busiest_day=max(sorted(days), key=lambda day: days[day], default=""),
        busiest_hour=hours.index(max(hours)) if days else None,
    )


def days_of(quarters: Iterable[tuple[int, int, int]], zone: tzinfo) -> list[RecallDay]:
    """Return the days of quarters of an hour, with their prompts and those that were answered."""
    days: dict[str, tuple[int, int]] = {}
    for quarter, asked, given in sorted(quarters):
        name = moment_of(quarter * QUARTER, zone).date().isoformat()
        before = days.get(name, (0, 0))
        days[name] = before[0] + asked, before[1] + given
    return [RecallDay(day, *counts) for day, counts in days.items()]


def streak_of(days: Mapping[str, int]) -> int:
    """Return the most days that follow each other."""
    best = length = 0
    before = None
    for day in map(datetime.fromisoformat, sorted(days)):
        length = length + 1 if before is not None and day - before == timedelta(days=1) else 1
        best, before = max(best, length), day
    return best
