"""What is shown again and again in one place: it fits the terminal, or says how much does not."""

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text


class Fitted:
    """As many lines of something as the terminal has; the last one counts those that are hidden.

    Args:
        what: to be shown.
    """

    def __init__(self, what: RenderableType) -> None:
        """Remember it."""
        self._what = what

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the lines that fit."""
        lines = console.render_lines(self._what, options.update(height=None), pad=False)
        rows = options.height or options.max_height
        hidden = len(lines) - max(0, rows - 1) if len(lines) > rows else 0
        for line in lines[: len(lines) - hidden]:
            yield from line
            yield Segment.line()
        if hidden:
            yield Text(_told(hidden), style="yellow", overflow="crop", no_wrap=True)


def _told(hidden: int) -> str:
    what = "line" if hidden == 1 else "lines"
    return f"… {hidden} more {what}: enlarge the terminal, or run `memorybus status`"
