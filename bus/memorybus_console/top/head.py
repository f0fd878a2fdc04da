"""The first line: the bus, its state, and how old the snapshot is; pure."""

from typing import Final

from memorybus.health.verdict import BusState
from memorybus.text.display import count_text, iso
from rich.text import Text

from memorybus_console.views.figures import duration
from memorybus_console.views.render import cell

SILENT_SECONDS: Final = 3.0
"""Seconds without a new snapshot after which the screen says so."""

_STYLES: Final = {"OK": "bold green", "WARNING": "bold yellow", "CRITICAL": "bold red"}


def head_line(namespace: str, bus: BusState | None, silent: float, *, frozen: bool) -> Text:
    """Return the first line.

    Args:
        namespace: the namespace of the bus.
        bus: the last state that was read; None before the first.
        silent: seconds since then.
        frozen: whether the operator froze the screen.
    """
    line = Text("memorybus ", no_wrap=True).append_text(cell(namespace, "bold")).append("  ")
    if silent >= SILENT_SECONDS:
        line.append(f"no news for {duration(silent)}  ", "bold red")
    if bus is None or bus.status is None:
        return line
    state, at = bus.verdict.state, f"{(iso(bus.at_ms) or '')[11:19]} UTC"
    if silent >= SILENT_SECONDS:
        return line.append(f"shown as of {at}", "dim")
    line.append(f"{state}  ", _STYLES.get(state, "bold"))
    if frozen:
        line.append("frozen (space)  ", "bold yellow")
    workers, events = len(bus.status.workers), bus.status.log.published
    return line.append(f"{count_text(workers, 'worker')}  {count_text(events, 'event')}  {at}")
