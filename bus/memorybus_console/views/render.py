"""Tables, lines, figures and JSON in the style of all commands; every text is escaped."""

import json
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Any

from memorybus.config.settings import FILE_NAME
from memorybus.health.finding import Check
from memorybus.text.display import escape_char, is_dangerous, one_line, visible
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text


def table(
    heads: Iterable[str], rows: Iterable[Iterable[object]], texts: Collection[str] = ()
) -> Table:
    """Return a table without a frame, which wraps only the columns `texts`.

    Args:
        rows: their cells: a styled `cell`, None for "-", or a value for `str`.
    """
    made = Grid(*heads, texts=texts)
    for row in rows:
        made.add_row(*(value if isinstance(value, Text) else cell(value) for value in row))
    return made


def cell(value: object, style: str = "") -> Text:
    """Return a styled cell, escaped and on one line."""
    return Text(one_line("-" if value is None else str(value)), style=style)


def line(text: str, style: str = "") -> Text:
    """Return a text with its line breaks, escaped."""
    return Text(visible(text), style=style)


def settings_source(settings_file: str) -> str:
    """Return in words which settings file was read; "" stands for none."""
    return settings_file or f"no {FILE_NAME} here, so none was read"


def rate(per_second: float | None) -> str | None:
    """Return events a second in a few characters; None if that is unknown."""
    if per_second is None:
        return None
    return f"{per_second:,.1f}" if per_second < 10 else f"{per_second:,.0f}"


def remedy(text: str) -> Text:
    """Return what to do, as a line below the problem."""
    return line(f"\n    → {text}", "yellow")


def check_line(check: Check) -> Text:
    """Return a check as a line, with its remedy below if it failed or warns."""
    sound = ("!", "yellow") if check.fix else ("✓", "green")
    mark = sound if check.ok else ("✗", "bold red")
    text = Text.assemble(mark, f" {visible(check.name):<16} {visible(check.found)}")
    return text.append_text(remedy(check.fix)) if check.fix else text


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """Return JSON that is safe to print: letters stay readable, control characters are escaped."""
    return harmless(json.dumps(value, ensure_ascii=False, indent=indent))


def harmless(text: str) -> str:
    """Return equivalent JSON text, with its control characters escaped."""
    return "".join(escape_char(c) if is_dangerous(c) else c for c in text)


_LEAST_TEXT = 20  # the fewest characters in which a column of running text is still readable

_GAP = 2


class Grid(Table):
    """A table without a frame.

    Args:
        texts: the heads of those columns that hold running text, which may be wrapped.
    """

    def __init__(self, *columns: str, texts: Collection[str] = ()) -> None:
        super().__init__(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
        self._texts = texts
        for column in columns:
            self.add_column(column, overflow="fold", no_wrap=column not in texts)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, or its rows as blocks if it does not fit."""
        if self._least_width(console, options) <= options.max_width:
            yield from super().__rich_console__(console, options)
        else:
            yield from self._blocks(options.max_width)

    def _least_width(self, console: Console, options: ConsoleOptions) -> int:
        """Return how many characters the table needs in width."""
        natural = options.update(width=1_000_000)
        needed = -_GAP
        for column in self.columns:
            cells = [Text(str(column.header)), *column.cells]
            widest = max(Measurement.get(console, natural, cell).maximum for cell in cells)
            folds = str(column.header) in self._texts
            needed += _GAP + (min(widest, _LEAST_TEXT) if folds else widest)
        return needed

    def _blocks(self, width: int) -> Iterator[Text]:
        heads = [str(column.header) for column in self.columns]
        longest = max(map(len, heads)) + _GAP
        for row in zip(*(column.cells for column in self.columns), strict=True):
            for head, cell in zip(heads, row, strict=True):
                shown = cell if isinstance(cell, Text) else Text(str(cell))
                if shown.plain:
                    yield Text.assemble((f"{head:<{longest}}", "bold"), shown, overflow="fold")
            yield Text("")


_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def duration(seconds: float | None) -> str:
    """Return a time span in its largest unit: ``45 s``, ``3 min``, ``2 h``; "" for none."""
    if seconds is None:
        return ""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def ago(at: str | None, now_ms: int) -> str:
    """Return how long ago an ISO 8601 time is; "" for none."""
    if not at:
        return ""
    return duration(now_ms / 1000 - datetime.fromisoformat(at).timestamp())


def since(at_ms: int, now_ms: int) -> str:
    """Return how long ago a time in milliseconds is; "" for 0."""
    return duration((now_ms - at_ms) / 1000) if at_ms else ""


def short(at: str | None) -> str:
    """Return an ISO 8601 time as tables show it: ``2026-05-31 18:00:00``; "" for none."""
    return (at or "")[:19].replace("T", " ")


def count(number: float | None) -> str:
    """Return a number with thin spaces between its thousands; "" for none."""
    if number is None:
        return ""
    rounded = round(number, 1) if abs(number) < 10 else round(number)
    return f"{rounded:,}".replace(",", "\u202f").removesuffix(".0")
