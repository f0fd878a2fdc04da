"""What providers keep of people, as tables; pure, and safe against hostile text."""

from collections.abc import Iterable, Sequence

from rich.table import Table

from memorybus.operations.memories.browsing import KeptMemory, Person
from memorybus.surfaces.views.render import add_row, grid, line
from memorybus.text.display import iso


def people_table(people: Iterable[Person], providers: Sequence[str]) -> Table:
    """Return people with how many memories each provider keeps of them."""
    table = grid("user", "agent", "workspace", *providers)
    for one in people:
        counts = (_count(one, name) for name in providers)
        add_row(table, one.user, one.agent, one.workspace or None, *counts)
    return table


def _count(one: Person, provider: str) -> str:
    if provider not in one.memories:
        return "-"
    count = one.memories[provider]
    return "some" if count is None else str(count)


def kept_table(memories: Iterable[KeptMemory]) -> Table:
    """Return memories with what is known of where each came from."""
    table = grid("kind", "at", "event", "text", texts=("text",))
    for one in memories:
        day = (iso(one.at) or "-")[:10]
        add_row(table, one.kind or None, day, one.event or None, line(_text(one)))
    return table


def _text(one: KeptMemory) -> str:
    said = f"{one.speaker}: {one.text}" if one.speaker else one.text
    ended = iso(one.until)
    return f"{said} (until {ended[:10]})" if ended else said
