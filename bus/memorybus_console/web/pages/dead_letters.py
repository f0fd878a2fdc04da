"""Shows dead letters by error and by key: the reason, the number of tries, the events behind.

However many there are, the view reads only the first of each lane, `MAX_LETTERS` in all, and says
so if there are more; `memorybus dlq ls` reads all of them.
"""

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

from memorybus.dead_letters.queue import LaneId, LocatedLetter
from memorybus.errors import LogUnavailable
from memorybus.health.verdict import BusState

from memorybus_console.operations.dead_letters import open_dead_letters
from memorybus_console.views import dead_letters as views
from memorybus_console.web.page import Page, PageRequest

MAX_LETTERS: Final = 2_000
"""More are read if a view needs `MIN_LETTERS_PER_LANE` of each lane that has some."""

MIN_LETTERS_PER_LANE: Final = 25

MAX_KEYS: Final = 50  # how many keys are shown


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the groups of errors and the first keys of the selected provider and error."""
    provider, error = (request.query.get(name, "") for name in ("provider", "error"))
    counts = lanes_with_letters(request.bus_state(), provider)
    with closing(open_dead_letters(request.settings)) as desk:
        each = max(MIN_LETTERS_PER_LANE, MAX_LETTERS // max(1, len(counts)))
        names = dict.fromkeys(name for name, _ in counts)
        letters = [dead for name in names for dead in desk.first_letters(name, each)]
    keys = views.first_letters(letters, error)
    return {
        "provider": provider,
        "error": error,
        "total": sum(counts.values()),
        "read": len(letters),
        "errors": views.letters_by_error(letters),
        "keys": [(dead, place_of(dead), waiting) for dead, waiting in keys[:MAX_KEYS]],
        "more_keys": max(0, len(keys) - MAX_KEYS),
    }


def lanes_with_letters(bus: BusState, provider: str) -> dict[LaneId, int]:
    """Return the number of dead letters of each lane that has any."""
    if bus.status is None:
        raise LogUnavailable(bus.verdict.line)
    return {
        (name, partition): lane.dead
        for name, lanes in bus.lanes.items()
        if provider in ("", name)
        for partition, lane in enumerate(lanes)
        if lane.dead
    }


def place_of(dead: LocatedLetter) -> str:
    """Return a letter's position as links write it: ``builtin/p07/1764041234567-0``."""
    return f"{dead.provider}/p{dead.partition:02d}/{dead.stored.id}"


PAGE: Final = Page(
    path="/dead", template="dead_letters.html", show=show, label="Dead letters", key="d"
)
