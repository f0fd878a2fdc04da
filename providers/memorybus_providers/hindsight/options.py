"""The options of an instance, read from its table; imports nothing heavy."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from memorybus_providers.remote import options

Budget = Literal["low", "mid", "high"]
"""How thoroughly Hindsight searches (``budget``)."""

_BUDGETS: Final = ("low", "mid", "high")


class HindsightOptions(
    options.ServerOptions, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The options; `SCHEMA` describes each."""

    base_url: str = "http://localhost:8888"
    timeout: float = 60.0
    queued: bool = False
    prefetch: Literal["recall", "reflect"] = "recall"
    recall_budget: Budget = "mid"
    recall_tokens: int = 4_096
    reflect_budget: Budget = "low"
    reflect_tokens: int = 1_024

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        positive = min(self.recall_tokens, self.reflect_tokens) >= 1
        return {
            **options.ServerOptions.rules(self),
            "recall_tokens and reflect_tokens must be positive": positive,
        }


SCHEMA: Final[tuple[Mapping[str, Any], ...]] = (
    options.address_row(
        "http://localhost:8888", "https://api.hindsight.vectorize.io for Hindsight Cloud"
    ),
    *options.SCHEMA,
    options.prefix_row("banks"),
    {
        "key": "timeout",
        "description": "seconds for one write: Hindsight's model reads the text meanwhile",
        "default": 60.0,
    },
    {
        "key": "queued",
        "description": "whether turns and delegations are put into Hindsight's own queue: an event "
        "then counts when it is queued, and what the queue fails on is shown by Hindsight alone",
        "default": False,
    },
    {
        "key": "prefetch",
        "description": "what a recall asks Hindsight for: memories (recall), or an answer that its "
        "model makes of them (reflect), which takes seconds",
        "default": "recall",
        "choices": ("recall", "reflect"),
    },
    {
        "key": "recall_budget",
        "description": "how thoroughly a recall searches: low, mid or high",
        "default": "mid",
        "choices": _BUDGETS,
    },
    {"key": "recall_tokens", "description": "tokens of a recall at most", "default": 4_096},
    {
        "key": "reflect_budget",
        "description": "how thoroughly a reflection searches: low, mid or high",
        "default": "low",
        "choices": _BUDGETS,
    },
    {"key": "reflect_tokens", "description": "tokens of a reflection at most", "default": 1_024},
)
