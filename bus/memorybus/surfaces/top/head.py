"""The first line: which bus, how it does, and how old what is shown is; pure."""

from typing import Final

from rich.text import Text

from memorybus.health.looks import Look
from memorybus.surfaces.views.dead_letters import count_text
from memorybus.surfaces.views.render import cell
from memorybus.surfaces.views.shown import duration
from memorybus.text.display import iso

LATE: Final = 3.0
"""Seconds without news after which the screen says so."""

_STYLES: Final = {"OK": "bold green", "WARNING": "bold yellow", "CRITICAL": "bold red"}


def head_line(namespace: str, look: Look | None, silent: float, *, frozen: bool) -> Text:
    """Return the first line.

    Args:
        namespace: of the bus.
        look: the last one that saw anything; None before the first.
        silent: seconds since it.
        frozen: whether somebody holds the screen.
    """
    line = Text("memorybus ", no_wrap=True).append_text(cell(namespace, "bold")).append("  ")
    if silent >= LATE:
        line.append(f"no news for {duration(silent)}  ", "bold red")
    if look is None or look.status is None:
        return line
    state, at = look.verdict.state, f"{(iso(look.at_ms) or '')[11:19]} UTC"
    if silent >= LATE:
        return line.append(f"below is of {at}", "dim")
    line.append(f"{state}  ", _STYLES.get(state, "bold"))
    if frozen:
        line.append("held (space)  ", "bold yellow")
    workers, events = len(look.status.workers), look.status.log.published
    return line.append(f"{count_text(workers, 'worker')}  {count_text(events, 'event')}  {at}")
