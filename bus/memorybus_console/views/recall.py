"""Shows what was recalled, to people and programs; pure, with hostile text escaped."""

from collections.abc import Iterable, Iterator

import msgspec
from memorybus.recall.model import RecalledItem
from memorybus.text.display import iso, one_line
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from memorybus_console.operations.preview import PromptPreview, ProviderAnswer
from memorybus_console.views.render import cell, line, table

_HOUR_MS = 3_600_000
_STEPS = (
    (24 * 365.25, "y"),
    (24 * 30.44, "mo"),
    (24.0, "d"),
    (1.0, "h"),
)
"""The hours in each unit of an age, the longest first."""

_INDENT = (0, 0, 1, 4)

_OUTCOMES = {
    "warm": "ready",
    "fresh": "in time",
    "late": "too late",
    "failed": "failed",
    "paused": "left out for a while",
    "unserved": "no worker",
}
_STYLES = {"warm": "green", "fresh": "green", "late": "yellow"}


class RecalledMemory(msgspec.Struct, frozen=True):
    """A memory; times are ISO 8601, UTC."""

    provider: str
    text: str
    session: str
    at: str | None
    source: str
    truncated: bool
    speaker: str
    event: str
    until: str | None
    before: str
    score: float
    matched: tuple[str, ...]
    meaning: float | None
    parts: dict[str, float]


class Recollected(msgspec.Struct, frozen=True):
    """What is remembered: the block, and the memories in it."""

    text: str
    results: list[RecalledMemory]


class Prompted(msgspec.Struct, frozen=True):
    """What a prompt would be given; milliseconds."""

    block: str
    answers: tuple[ProviderAnswer, ...]
    items: list[RecalledMemory]
    trivial: bool
    waited_ms: float
    patience_ms: float


def recalled(item: RecalledItem) -> RecalledMemory:
    """Return a memory as ``memorybus recall --json`` shows it."""
    times = {"at": iso(item.at), "until": iso(item.until)}
    return RecalledMemory(**msgspec.structs.asdict(item) | times)


def age(at: int | None, now_ms: int) -> str:
    """Return how old a memory is in its largest unit, as in "3 d"; "-" if that is unknown.

    Args:
        at: when it was said, milliseconds.
        now_ms: the present time, milliseconds.
    """
    if not at:
        return "-"
    hours = max(0, now_ms - at) / _HOUR_MS
    for long, unit in _STEPS:
        if hours >= long:
            return f"{int(hours / long)} {unit}"
    return "now"


def recalled_table(results: Iterable[RecalledItem], now_ms: int) -> Table:
    """Return provider, age and text of each memory; the text column takes the rest of the width."""
    rows = ((each.provider, age(each.at, now_ms), line(_text(each))) for each in results)
    return table(("provider", "age", "text"), rows, texts=("text",))


def memory_details(number: int, item: RecalledItem) -> Padding:
    """Return one memory with its origin and with why it was found.

    Args:
        number: its number in the answer, from 1.
    """
    text = Text()
    text.append(f"{number}. ", style="bold").append(_origin(item), style="bold")
    text.append("\n").append_text(line(_text(item)))
    for name, value in _reasons(item):
        text.append(f"\n{name:<9}", style="dim").append(one_line(value))
    return Padding(text, _INDENT)


def _text(item: RecalledItem) -> str:
    more = " (and more, which the provider left out)" if item.truncated else ""
    ended = iso(item.until)
    until = f" (until {ended[:10]})" if ended else ""
    before = f" (before: {item.before})" if item.before else ""
    return f"{item.text}{more}{until}{before}"


def _origin(item: RecalledItem) -> str:
    where = (item.provider, item.speaker, iso(item.at), item.session, item.source)
    return one_line(" · ".join(part for part in where if part))


def _reasons(item: RecalledItem) -> list[tuple[str, str]]:
    """Return why a memory was found, as names and values; unknown ones are left out."""
    parts = ", ".join(f"{name} {amount:.3g}" for name, amount in item.parts.items())
    score = f"{item.score:.3g}" if item.score else ""
    reasons = (
        ("matched", ", ".join(item.matched)),
        ("meaning", "" if item.meaning is None else f"{item.meaning:.2f} of 1"),
        ("score", f"{score} ({parts})" if parts else score),
        ("event", f"{item.event}: memorybus events get {item.event}" if item.event else ""),
    )
    return [(name, value) for name, value in reasons if value]


def prompted(preview: PromptPreview) -> Prompted:
    """Return the answer to a prompt as ``memorybus recall --prompt --json`` shows it."""
    items = {"items": list(map(recalled, preview.items))}
    return Prompted(**msgspec.structs.asdict(preview) | items)


def prompt_parts(preview: PromptPreview) -> Iterator[RenderableType]:
    yield prompt_table(preview)
    yield line(f"\n{preview.block}" if preview.block else "")


def outcome_words(answer: ProviderAnswer) -> str:
    nothing = answer.outcome in {"warm", "fresh"} and not answer.memories
    return f"{_OUTCOMES[answer.outcome]}: nothing fits" if nothing else _OUTCOMES[answer.outcome]


def prompt_table(preview: PromptPreview) -> Table:
    """Return for each provider how it answered, how long it took, and how much was used of it."""
    heads = ("provider", "answered", "ms", "said", "in the block", "why")
    rows = (
        (
            answer.provider,
            cell(outcome_words(answer), _STYLES.get(answer.outcome, "red")),
            None if answer.ms is None else f"{answer.ms:.0f}",
            *(answer.memories, answer.given, answer.why or None),
        )
        for answer in preview.answers
    )
    return table(heads, rows, texts=("why",))
