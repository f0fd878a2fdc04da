"""Shows what a prompt would be given, to people and programs; pure, hostile text escaped."""

from typing import Any, TypedDict

import msgspec
from rich.table import Table

from memorybus_console.operations.preview import PromptPreview, ProviderAnswer
from memorybus_console.views.recall import Recalled, recalled_json
from memorybus_console.views.render import add_row, cell, grid

_OUTCOMES = {
    "warm": "ready",
    "fresh": "in time",
    "late": "too late",
    "failed": "failed",
    "paused": "left out for a while",
    "unserved": "no worker",
}
_STYLES = {"warm": "green", "fresh": "green", "late": "yellow"}


class Prompted(TypedDict):
    """What a prompt would be given; milliseconds."""

    block: str
    answers: list[ProviderAnswer]
    items: list[Recalled]
    trivial: bool
    waited_ms: float
    patience_ms: float


def outcome_words(one: ProviderAnswer) -> str:
    """Return how a provider answered, in words."""
    nothing = one.outcome in {"warm", "fresh"} and not one.memories
    return f"{_OUTCOMES[one.outcome]}: nothing fits" if nothing else _OUTCOMES[one.outcome]


def prompt_table(found: PromptPreview) -> Table:
    """Return for each provider how it answered, how long it took, and how much was used of it."""
    table = grid("provider", "answered", "ms", "said", "in the block", "why", texts=("why",))
    for one in found.answers:
        style = _STYLES.get(one.outcome, "red")
        took = None if one.ms is None else f"{one.ms:.0f}"
        answered = cell(outcome_words(one), style)
        add_row(table, one.provider, answered, took, one.memories, one.given, one.why or None)
    return table


def prompt_json(found: PromptPreview) -> dict[str, Any]:
    """Return the answer as ``memorybus recall --prompt --json`` shows it."""
    told: dict[str, Any] = msgspec.to_builtins(found)
    return told | {"items": [recalled_json(one) for one in found.items]}
