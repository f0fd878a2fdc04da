"""What a prompt would be given, as people and programs read it; pure, safe against hostile text."""

from typing import Any

import msgspec
from rich.table import Table

from memorybus.recall.asking import PromptPreview, ProviderAnswer
from memorybus.surfaces.views.recall import recalled_json
from memorybus.surfaces.views.render import add_row, cell, grid

_SAID = {
    "warm": "stood ready",
    "fresh": "in time",
    "late": "too late",
    "failed": "failed",
    "paused": "left out for a while",
    "unserved": "no worker",
}
_STYLES = {"warm": "green", "fresh": "green", "late": "yellow"}


def outcome_words(one: ProviderAnswer) -> str:
    """Return how a provider answered, in words."""
    nothing = one.outcome in {"warm", "fresh"} and not one.memories
    return f"{_SAID[one.outcome]}: nothing fits" if nothing else _SAID[one.outcome]


def asked_table(found: PromptPreview) -> Table:
    """Return each provider's part: how it answered, how long it took, how much of it is given."""
    table = grid("provider", "answered", "ms", "said", "in the block", "why", texts=("why",))
    for one in found.answers:
        style = _STYLES.get(one.outcome, "red")
        took = None if one.ms is None else f"{one.ms:.0f}"
        answered = cell(outcome_words(one), style)
        add_row(table, one.provider, answered, took, one.memories, one.given, one.why or None)
    return table


def asked_json(found: PromptPreview) -> dict[str, Any]:
    """Return it as ``memorybus recall --prompt --json`` shows it."""
    told: dict[str, Any] = msgspec.to_builtins(found)
    return told | {"items": [recalled_json(one) for one in found.items]}
