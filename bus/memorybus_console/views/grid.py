"""The table of all commands. It shows every cell whole; only running text is wrapped, ids never.

If its rows do not fit the terminal, each row becomes a block with a line for each column, as with
``\\x auto`` in ``psql``.
"""

from collections.abc import Collection, Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_LEAST_TEXT = 20
"""The fewest characters in which a column of running text is still readable."""

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
