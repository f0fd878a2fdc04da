"""What the commands of history share: checked stores, a bar, and what they say on Ctrl-C."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.surfaces.views.output import Output

if TYPE_CHECKING:
    from memorybus.operations.stores import Stores


UNTOUCHED = "interrupted: nothing was changed"

EVERY = 5.0
"""Seconds between lines of progress where nobody watches."""


@contextmanager
def checked_stores(settings: Settings) -> "Iterator[Stores]":
    """Open the stores of the log that the settings mean.

    Raises:
        WrongPartitionCount: it was born with another count.
        LogUnavailable: Redis is away.
    """
    from memorybus.operations.stores import Stores

    with Stores(settings) as stores:
        stores.check_partitions()
        yield stores


@contextmanager
def steps(
    output: Output, what: str, unit: str, interrupted: str
) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar; the block reports the step, how much is done, and of how much (0: unknown).

    Args:
        output: where to.
        what: the first step.
        unit: of what is counted.
        interrupted: what Ctrl-C and SIGTERM say.
    """
    with note_on_interrupt(output, interrupted), output.progress(unit) as bar:
        task = bar.add_task(what, total=None)

        def tell(step: str, done: int, total: int) -> None:
            bar.update(task, description=step, completed=done, total=total or None)

        yield tell


@contextmanager
def note_on_interrupt(output: Output, text: str) -> Iterator[None]:
    """Print a note when Ctrl-C or SIGTERM ends the block."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        output.note(text, "yellow")
        raise


def show_found(
    output: Output, found: Sequence[Any], table: Callable[[], RenderableType], none: str
) -> int:
    """Show what a command lists, or say that there is none; return the exit code."""
    if output.json:
        output.result(found)
    elif found:
        output.show(table())
    else:
        output.note(none)
    return 0


class Seldom:
    """Says when the next line is due: at once, every `EVERY` seconds, and at the end."""

    def __init__(self, clock: Clock) -> None:
        """Let the first line be due at once."""
        self._clock = clock
        self._next = clock.monotonic()

    def due(self, *, last: bool) -> bool:
        """Say whether to speak now."""
        now = self._clock.monotonic()
        if now < self._next and not last:
            return False
        self._next = now + EVERY
        return True
