"""What several commands share: checked stores, progress bars, a note on Ctrl-C."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memorybus.clock import Clock
from memorybus.config.settings import Settings

from memorybus_console.views.output import Output

if TYPE_CHECKING:
    from memorybus_console.operations.ingest.report import StageStep
    from memorybus_console.operations.stores import Stores


LINE_INTERVAL = 5.0
"""Seconds between lines of progress where there is no terminal."""


@contextmanager
def checked_stores(settings: Settings) -> "Iterator[Stores]":
    """Open the stores of the log that the settings name, and check them.

    Raises:
        WrongPartitionCount: the log was created with another number of partitions.
    """
    from memorybus_console.operations.stores import Stores

    with Stores(settings) as stores:
        stores.check_partitions()
        yield stores


@contextmanager
def show_bar(
    output: Output, what: str, unit: str, interrupted: str
) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar, and yield a function that updates it.

    The function takes the step, how much is done, and the total (0 if it is unknown).

    Args:
        interrupted: the note on Ctrl-C and SIGTERM.
    """
    with note_on_interrupt(output, interrupted), output.progress(unit) as bar:
        task = bar.add_task(what, total=None)

        def tell(step: str, done: int, total: int) -> None:
            bar.update(task, description=step, completed=done, total=total or None)

        yield tell


@contextmanager
def show_stage(
    output: Output, what: str, unit: str, total: int | None = None
) -> "Iterator[StageStep]":
    """Show the progress bar of one stage, and yield a function that advances it.

    Args:
        total: how many there are; None if that is unknown.
    """
    with output.progress(unit) as bar:
        task = bar.add_task(what, total=total)

        def step(count: int = 1, /) -> None:
            bar.advance(task, count)

        yield step


@contextmanager
def note_on_interrupt(output: Output, text: str) -> Iterator[None]:
    """Print a note when Ctrl-C or SIGTERM ends the block."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        output.note(text, "yellow")
        raise


class LineSchedule:
    """Decides when to print a line: at once, every `LINE_INTERVAL` seconds, and at the end."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next = clock.monotonic()

    def is_due(self, *, last: bool) -> bool:
        """Return whether to print a line now; the last one is always due."""
        now = self._clock.monotonic()
        if now < self._next and not last:
            return False
        self._next = now + LINE_INTERVAL
        return True
