"""Shows what providers keep about people, as tables; pure, with hostile text escaped."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from memorybus.text.display import event_name, iso
from rich.table import Table
from rich.text import Text

from memorybus_console.operations.memories.amending import MemoryAmendment
from memorybus_console.operations.memories.browsing import KeptMemory, Person
from memorybus_console.views.events import summary
from memorybus_console.views.render import add_row, grid, line
from memorybus_console.views.safe import one_line


def people_table(people: Iterable[Person], providers: Sequence[str]) -> Table:
    """Return people with the number of memories that each provider keeps about them."""
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
    """Return memories with their kind, day and event, as far as they are known."""
    table = grid("kind", "at", "event", "text", texts=("text",))
    for one in memories:
        day = (iso(one.at) or "-")[:10]
        add_row(table, one.kind or None, day, one.event or None, line(_text(one)))
    return table


def plan_text(plan: MemoryAmendment) -> Text:
    """Return what would be done to a memory, and its effect at each provider."""
    rows = [(plan.memory.kind or "memory", _text(plan.memory))]
    if plan.content:
        rows.append(("correct to", plan.content))
    if plan.brought is not None:
        brought = f"{event_name(plan.brought.event)} {plan.brought.id}"
        rows.append(("came from", f"{brought}: {summary(plan.brought.event)}"))
    drafts = (draft.event for draft in plan.drafts)
    rows += (("publishes", f"{event_name(event)}: {summary(event)}") for event in drafts)
    rows += plan.effects.items()
    rows += (("stays", what) for what in plan.stays)
    width = max(len(one_line(name)) for name, _ in rows)
    text = Text()
    for name, value in rows:
        text.append(f"{one_line(name):<{width}}  ", style="bold").append(f"{one_line(value)}\n")
    text.rstrip()
    return text


def plan_json(plan: MemoryAmendment) -> dict[str, Any]:
    """Return an amendment's plan as ``--json`` shows it."""
    return {
        "memory": msgspec.to_builtins(plan.memory),
        "content": plan.content,
        "events": [msgspec.to_builtins(draft) for draft in plan.drafts],
        "effects": plan.effects,
        "stays": list(plan.stays),
    }


def _text(one: KeptMemory) -> str:
    said = f"{one.speaker}: {one.text}" if one.speaker else one.text
    ended = iso(one.until)
    return f"{said} (until {ended[:10]})" if ended else said
