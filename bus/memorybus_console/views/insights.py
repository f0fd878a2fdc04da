"""Shows insights in a terminal of 80 columns: totals, tables with bars, and the week as a map."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import msgspec
from memorybus.insights.report import Activity, Insights, Overview, Share
from memorybus.text.display import iso
from rich.console import RenderableType
from rich.text import Text

from memorybus_console.result import Column, Remark
from memorybus_console.views.presenter import block, table_of
from memorybus_console.views.render import count, line

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_SHADES = "·▂▃▅▇█"
_BAR = 16
_MOST_ROWS = 8

ShortName = Annotated[str, Column(most=24)]
Bar = Annotated[Text, Column(title=" ")]
Day = Annotated[str, Column(most=10)]


class ShareRow(msgspec.Struct, frozen=True):
    """A model, platform, agent or person."""

    name: ShortName
    sessions: str
    turns: str
    tokens: str
    cost: str
    bar: Bar


class CountRow(msgspec.Struct, frozen=True):
    """Something that was counted, and its share as a bar."""

    name: ShortName
    count: str
    bar: Bar


class SkillRow(msgspec.Struct, frozen=True):
    """A skill."""

    skill: ShortName
    loads: int
    edits: int
    last: Day


class LongRow(msgspec.Struct, frozen=True):
    """A long session."""

    session: ShortName
    user: Annotated[str, Column(most=16)]
    began: Day
    hours: str
    turns: int
    messages: int


class MemoryRow(msgspec.Struct, frozen=True):
    """What a store, or a provider's tools, learned."""

    where: ShortName
    learned: int
    corrected: int
    removed: int


class DerivedRow(msgspec.Struct, frozen=True):
    """Conclusions of one kind; the cost is in the currency of the deriver's prices."""

    kind: ShortName
    conclusions: int
    tokens: int
    cost: str


def insights_parts(insights: Insights) -> Iterator[RenderableType]:
    """Yield what people see of insights."""
    yield line(heading(insights), "bold")
    yield block({title: Text(text) for title, text in totals(insights)})
    yield from _shares("model", insights.models)
    yield from _shares("platform", insights.platforms)
    yield from _shares("agent", insights.agents)
    yield from _shares("person", insights.people)
    yield from _counts("tool calls", [(each.tool, each.calls) for each in insights.tools])
    skills = [
        SkillRow(each.skill, each.loads, each.edits, _day(each.last))
        for each in insights.skills[:_MOST_ROWS]
    ]
    yield from _section("skills", skills)
    yield from _memories(insights)
    yield from _section("derived", [
        DerivedRow(each.kind, each.conclusions, each.tokens_in + each.tokens_out,
                   "-" if each.cost is None else f"{each.cost:.4f}")
        for each in insights.derived
    ])  # fmt: skip
    yield from _week(insights.activity)
    yield from _section("longest sessions", [
        LongRow(each.session, each.user, _day(each.began), f"{each.hours:.1f}", each.turns,
                each.messages)
        for each in insights.longest
    ])  # fmt: skip


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
    overview, sub = insights.overview, insights.delegations
    return [
        ("sessions", f"{count(overview.sessions)}, {overview.hours:.1f} hours from first to last"),
        ("turns", count(overview.turns)),
        ("active days", f"{insights.activity.active_days}, in a row {insights.activity.streak}"),
        ("messages", _messages(overview)),
        ("tool calls", count(overview.tool_calls)),
        ("tokens", f"{count(overview.tokens_in)} in, {count(overview.tokens_out)} out"),
        ("cost", cost_of(overview.cost)),
        ("compressions", count(insights.compressions)),
        ("delegations", f"{count(sub.count)}, {count(sub.tokens_in + sub.tokens_out)} tokens"),
    ]


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


def _day(at: int) -> str:
    return (iso(at) or "")[:10]


def _bar(value: float, most: float) -> Text:
    return Text(bar(value, most), "cyan")


def _section(title: str, rows: Sequence[msgspec.Struct]) -> Iterator[RenderableType]:
    if rows:
        yield line(f"\n{title}", "bold")
        yield table_of(rows)


def _shares(title: str, shares: Sequence[Share]) -> Iterator[RenderableType]:
    most = max((each.turns for each in shares), default=0)
    yield from _section(f"by {title}", [
        ShareRow(
            each.name or "not recorded",
            count(each.sessions),
            count(each.turns),
            count(each.tokens_in + each.tokens_out),
            "-" if each.cost is None else cost_of(each.cost),
            _bar(each.turns, most),
        )
        for each in shares[:_MOST_ROWS]
    ])  # fmt: skip


def _counts(title: str, counted: Iterable[tuple[str, int]]) -> Iterator[RenderableType]:
    shown = list(counted)[:_MOST_ROWS]
    most = max((amount for _, amount in shown), default=0)
    rows = [CountRow(name, count(amount), _bar(amount, most)) for name, amount in shown]
    yield from _section(title, rows)


def _memories(insights: Insights) -> Iterator[RenderableType]:
    rows = [
        MemoryRow(each.where, each.learned, each.corrected, each.removed)
        for each in insights.memories
    ]
    yield from _section("memories", rows)


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
    yield line(f"busiest day {activity.busiest_day}, busiest hour {activity.busiest_hour}")
