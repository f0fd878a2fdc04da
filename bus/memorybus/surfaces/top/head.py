"""The first line: the bus, its state, and how old the snapshot is; pure."""

from typing import Final

from rich.text import Text

from memorybus.health.looks import Look
from memorybus.surfaces.views.dead_letters import count_text
from memorybus.surfaces.views.figures import duration
from memorybus.surfaces.views.render import cell
from memorybus.text.display import iso

SILENT_AFTER: Final = 3.0
"""Seconds without a new snapshot after which the screen says so."""

_STYLES: Final = {"OK": "bold green", "WARNING": "bold yellow", "CRITICAL": "bold red"}


def head_line(namespace: str, look: Look | None, silent: float, *, frozen: bool) -> Text:
    """Return the first line.

    Args:
        namespace: of the bus.
        look: the last one that reached Redis; None before the first.
        silent: seconds since then.
        frozen: whether the operator froze the screen.
    """
    line = Text("memorybus ", no_wrap=True).append_text(cell(namespace, "bold")).append("  ")
    if silent >= SILENT_AFTER:
        line.append(f"no news for {duration(silent)}  ", "bold red")
    if look is None or look.status is None:
        return line
    state, at = look.verdict.state, f"{(iso(look.at_ms) or '')[11:19]} UTC"
    if silent >= SILENT_AFTER:
        return line.append(f"shown as of {at}", "dim")
    line.append(f"{state}  ", _STYLES.get(state, "bold"))
    if frozen:
        line.append("frozen (space)  ", "bold yellow")
    workers, events = len(look.status.workers), look.status.log.published
    return line.append(f"{count_text(workers, 'worker')}  {count_text(events, 'event')}  {at}")
