"""The output of a command: results go to stdout, progress and notes to stderr."""

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec
from memorybus.config.settings import read_variable
from memorybus.text.display import visible
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from memorybus_console.views.render import harmless, json_text

NOTHING_DONE = "nothing was done; add --yes to do it"
"""The note below a plan that only shows what would be done."""

PIPE_WIDTH = 100_000
"""The width of tables in a pipe or a file, unless COLUMNS is set: so wide that no text wraps."""


MIN_WIDTH, USUAL_WIDTH = 20, 80
"""A terminal, or COLUMNS, that is narrower than the first counts as one of the second."""


class QuietPipeConsole(Console):
    """A console that raises `BrokenPipeError` for a closed pipe, so that `main` can end quietly."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if self.width < MIN_WIDTH:
            self.width = USUAL_WIDTH

    def on_broken_pipe(self) -> NoReturn:
        """Let the error through instead of ending the process here."""
        raise BrokenPipeError


class Output:
    """The two streams of one command.

    Args:
        json: print results as JSON only, without progress bars.
    """

    def __init__(self, *, json: bool) -> None:
        self.json = json
        width = None if sys.stdout.isatty() or read_variable("COLUMNS").isdigit() else PIPE_WIDTH
        self.out = QuietPipeConsole(highlight=False, markup=False, emoji=False, width=width)
        self.err = QuietPipeConsole(stderr=True, highlight=False, markup=False, emoji=False)

    @property
    def is_live(self) -> bool:
        """Whether stdout is a terminal at which a person reads: not with JSON."""
        return self.out.is_terminal and not self.json

    def result(self, value: Any) -> None:
        sys.stdout.write(json_text(msgspec.to_builtins(value)) + "\n")
        sys.stdout.flush()

    def json_line(self, value: Any) -> None:
        """Print one of many JSON results on a line of its own."""
        sys.stdout.write(json_text(msgspec.to_builtins(value), indent=None) + "\n")
        sys.stdout.flush()

    def pipe_line(self, line: bytes) -> None:
        """Print a line of JSON, with its line end, unchanged; escaped if stdout is a terminal.

        If the reader of a pipe goes away the command ends quietly, as with every other output.
        """
        if self.out.is_terminal:
            sys.stdout.write(harmless(line.decode()))
        else:
            sys.stdout.buffer.write(line)

    def show(self, renderable: RenderableType) -> None:
        """Print a result for people; text is not wrapped, and lines in a pipe are not padded."""
        is_text = isinstance(renderable, str | Text)
        if self.out.is_terminal:
            self.out.print(renderable, soft_wrap=is_text)
            return
        with self.out.capture() as captured:
            self.out.print(renderable, soft_wrap=is_text)
        sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))

    def aside(self, text: Text) -> None:
        """Print a styled text on stderr, because it is not the result."""
        self.err.print(text, soft_wrap=True)

    def note(self, text: str, style: str = "dim") -> None:
        """Print a note for people on stderr, with its control characters escaped."""
        self.err.print(Text(visible(text), style=style), soft_wrap=True)

    def note_unread(self, unread: Sequence[str]) -> None:
        """Print which parts of the past could not be read; the rest is shown."""
        for why in unread:
            self.note(f"a part of the past is left out: {why}", "yellow")

    def progress(self, what: str) -> Progress:
        """Return a progress bar on stderr; it is hidden with JSON, and without a terminal."""
        return Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn(what, markup=False),
            console=self.err,
            disable=self.json or not self.err.is_terminal,
        )
