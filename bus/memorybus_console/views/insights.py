"""Insights as people read them: totals and tables for any surface, and bars for a terminal."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta, tzinfo
from typing import NamedTuple

import msgspec
from memorybus.insights.activity import moment_of
from memorybus.insights.report import Activity, Insights, Overview, Share
from memorybus.text.display import one_line
from rich.console import RenderableType
from rich.text import Text

from memorybus_console.result import Remark
from memorybus_console.views.presenter import block
from memorybus_console.views.render import cell, count, line, table

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_SHADES = "·▂▃▅▇█"
_BAR = 16
_MOST_ROWS = 8
_MOST_DAYS = 60


class Row(NamedTuple):
    """One name of a table, its cells, and the value of its bar."""

    name: str
    cells: Sequence[str]
    value: float = 0


class Section(NamedTuple):
    """A table: the heads of its columns, its rows, and whether they have bars."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Row]
    has_bars: bool = False
    name_width: int = 24

    @property
    def most(self) -> float:
        """The largest value of a bar."""
        return max((row.value for row in self.rows), default=0)


def insights_parts(insights: Insights, zone: tzinfo) -> Iterator[RenderableType]:
    """Yield what a terminal shows of insights."""
    yield line(heading(insights), "bold")
    yield block({title: Text(text) for title, text in totals(insights)})
    yield from _week(insights.activity)
    for section in sections(insights, zone):
        yield line(f"\n{section.title}", "bold")
        yield table((*section.heads, *[" "] * section.has_bars), _rows(section))


def _rows(section: Section) -> Iterator[Sequence[object]]:
    for row in section.rows[:_MOST_ROWS]:
        bars = [cell(bar(row.value, section.most), "cyan")] if section.has_bars else []
        yield (one_line(row.name or "not recorded", section.name_width), *row.cells, *bars)


def insights_notes(insights: Insights) -> Iterator[Remark]:
    """Yield what the figures lack."""
    for gap in insights.gaps:
        yield Remark(gap, "dim")


def heading(insights: Insights) -> str:
    """Return the days and the filter in words."""
    chosen = (("agent", insights.agent), ("user", insights.user), ("platform", insights.platform))
    words = [f"{name} {value}" for name, value in chosen if value is not None]
    return ", ".join([f"The last {insights.days} days", *words, f"in {insights.zone}"])


def totals(insights: Insights) -> list[tuple[str, str]]:
    """Return the totals by title."""
    overview, activity, sub = insights.overview, insights.activity, insights.delegations
    return [
        ("sessions", f"{count(overview.sessions)}, {overview.hours:.1f} hours from first to last"),
        ("turns", count(overview.turns)),
        ("active days", f"{activity.active_days}, in a row {activity.streak}"),
        ("busiest day", activity.busiest_day or "none"),
        ("messages", _messages(overview)),
        ("tool calls", count(overview.tool_calls)),
        ("tokens", f"{count(overview.tokens_in)} in, {count(overview.tokens_out)} out"),
        ("cost", cost_of(overview.cost)),
        ("recall", _recall(insights)),
        ("compressions", count(insights.compressions)),
        ("delegations", f"{count(sub.count)}, {count(sub.tokens_in + sub.tokens_out)} tokens"),
    ]


def sections(insights: Insights, zone: tzinfo) -> list[Section]:
    """Return the tables that have rows; days are those of the zone."""
    tables = [
        _shares("model", insights.models),
        _shares("platform", insights.platforms),
        _shares("agent", insights.agents),
        _shares("person", insights.people),
        Section("tool calls", ("tool", "calls", "share", "last"), [
            Row(each.tool, (count(each.calls), f"{each.share:.0%}", day_of(each.last, zone)),
                each.calls)
            for each in insights.tools
        ], has_bars=True),
        Section("skills", ("skill", "loads", "edits", "last"), [
            Row(each.skill, (count(each.loads), count(each.edits), day_of(each.last, zone)))
            for each in insights.skills
        ]),
        *_memory_sections(insights, zone),
        Section("longest sessions", ("session", "person", "began", "hours", "turns"), [
            Row(each.session, (one_line(each.user, _BAR), day_of(each.began, zone),
                               f"{each.hours:.1f}", count(each.turns)))
            for each in insights.longest
        ]),
    ]  # fmt: skip
    return [section for section in tables if section.rows]


def _memory_sections(insights: Insights, zone: tzinfo) -> list[Section]:
    """Return the tables on what memory learned, derived and gave to prompts."""
    return [
        Section("memories", ("where", "learned", "corrected", "removed"), [
            Row(each.where, _counts(each.learned, each.corrected, each.removed))
            for each in insights.memories
        ]),
        Section("memories by age", ("became", "times"), [
            Row(name.replace("_", " "), _counts(times))
            for name, times in msgspec.structs.asdict(insights.aged).items() if times
        ]),
        Section("recall", ("provider", "asked", "warm", "fresh", "late", "nothing", "memories"), [
            Row(each.provider, _counts(each.asked, each.warm, each.fresh, each.late, each.nothing,
                                       each.memories))
            for each in insights.recall.providers
        ]),
        Section("recall by day", ("day", "asked", "given"), [
            Row(each.day, _counts(each.asked, each.given), each.given)
            for each in reversed(insights.recall.days)
        ], has_bars=True),
        Section("most used memories", ("event", "provider", "times", "last"), [
            Row(each.event, (one_line(each.provider, _BAR), count(each.times),
                             day_of(each.last, zone)))
            for each in insights.recall.most_used
        ], name_width=32),
        Section("derived", ("kind", "conclusions", "tokens", "cost"), [
            Row(each.kind, (*_counts(each.conclusions, each.tokens_in + each.tokens_out),
                            "-" if each.cost is None else f"{each.cost:.4f}"))
            for each in insights.derived
        ]),
    ]  # fmt: skip


def days_of(insights: Insights, zone: tzinfo) -> list[tuple[str, int]]:
    """Return spans of days with their turns, for at most 60 bars.

    They begin with the report, but if it is long, with the first day that has a turn.
    """
    turns = {date.fromisoformat(day): number for day, number in insights.activity.days.items()}
    until = moment_of(insights.until, zone).date()
    if insights.days > _MOST_DAYS and turns:
        first = min(turns)
    else:
        first = moment_of(insights.since, zone).date()
    until = max([until, *turns])
    length = (until - first).days + 1
    step = -(-length // _MOST_DAYS)
    bars = [(first + timedelta(days=start), 0) for start in range(0, length, step)]
    for day, number in turns.items():
        index = (day - first).days // step
        bars[index] = (bars[index][0], bars[index][1] + number)
    return [(day.isoformat(), number) for day, number in bars]


def day_of(at: int, zone: tzinfo) -> str:
    """Return the day of a time in milliseconds; "-" if it is unknown."""
    return moment_of(at, zone).date().isoformat() if at > 0 else "-"


def _messages(overview: Overview) -> str:
    parts = (overview.user_messages, overview.assistant_messages, overview.tool_messages)
    user, assistant, tool = map(count, parts)
    return f"{count(overview.messages)}: {user} user, {assistant} assistant, {tool} tool"


def cost_of(cost: float | None) -> str:
    """Return US dollars; small amounts keep four digits."""
    if cost is None:
        return "not recorded"
    return f"${cost:,.2f}" if cost >= 1 or not cost else f"${cost:.4f}"


def bar(value: float, most: float, width: int = _BAR) -> str:
    """Return a bar for a value; anything above 0 is visible."""
    return "█" * max(1, round(value / most * width)) if value > 0 else ""


def shade(value: int, most: int, shades: int) -> int:
    """Return which of some shades stands for a value; the first one only for 0."""
    return -(-value * (shades - 1) // most) if value else 0


def _counts(*numbers: int) -> Sequence[str]:
    return tuple(map(count, numbers))


def _recall(insights: Insights) -> str:
    asked = sum(day.asked for day in insights.recall.days)
    given = sum(day.given for day in insights.recall.days)
    return f"{count(asked)} prompts asked, {count(given)} were given memories"


def _shares(title: str, shares: Iterable[Share]) -> Section:
    heads = (title, "sessions", "turns", "tokens", "cost")
    return Section(f"by {title}", heads, [
        Row(each.name,
            (*_counts(each.sessions, each.turns, each.tokens_in + each.tokens_out),
             "-" if each.cost is None else cost_of(each.cost)),
            each.turns)
        for each in shares
    ], has_bars=True)  # fmt: skip


def _week(activity: Activity) -> Iterator[RenderableType]:
    """Yield the turns by weekday and hour."""
    most = max(map(max, activity.turns))
    if not most:
        return
    yield line("\nturns by weekday and hour", "bold")
    yield Text(f"     {'0':<12}{'6':<12}{'12':<12}{'18':<12}", "dim")
    full = max(map(sum, activity.turns))
    for name, hours in zip(WEEKDAYS, activity.turns, strict=True):
        cells = "".join(_SHADES[shade(turns, most, len(_SHADES))] * 2 for turns in hours)
        total = sum(hours)
        yield Text.assemble(
            f"{name}  ", (cells, "cyan"), f"  {count(total):>6} ", (bar(total, full, 12), "cyan")
        )
