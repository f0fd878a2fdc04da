"""The options of an instance, read from its table; imports nothing heavy."""

from collections.abc import Mapping
from typing import Any, Final

from memorybus_providers.remote import options


class HonchoOptions(options.ServerOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options; `SCHEMA` describes each."""

    base_url: str = "https://api.honcho.dev"
    results: int = 10
    context_ttl: float = 300.0
    observe_person: bool = True
    person_observes: bool = False
    observe_agent: bool = False
    agent_observes: bool = True
    dialectic_per_day: int = 200
    dialectic_timeout: float = 30.0

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        least = min(self.context_ttl, self.dialectic_per_day)
        return {
            **options.ServerOptions.rules(self),
            "results must be 1 to 100": 1 <= self.results <= 100,
            "dialectic_timeout must be positive": self.dialectic_timeout > 0,
            "context_ttl and dialectic_per_day must not be negative": least >= 0,
        }


SCHEMA: Final[tuple[Mapping[str, Any], ...]] = (
    options.address_row(
        "https://api.honcho.dev",
        "Enter for Honcho's own",
        "the server's address: Honcho's own, or yours (http://localhost:8000)",
    ),
    *options.SCHEMA,
    options.prefix_row("workspaces"),
    {"key": "timeout", "description": "seconds for one request", "default": 10.0},
    {
        "key": "results",
        "description": "messages, and conclusions, of one recall, 1 to 100",
        "default": 10,
    },
    {
        "key": "context_ttl",
        "description": "seconds for which the base context (card, representation) is kept",
        "default": 300.0,
    },
    {
        "key": "observe_person",
        "description": "whether Honcho reasons about the person",
        "default": True,
    },
    {
        "key": "person_observes",
        "description": "whether it keeps what the person holds of the agent",
        "default": False,
    },
    {
        "key": "observe_agent",
        "description": "whether Honcho reasons about the agent",
        "default": False,
    },
    {
        "key": "agent_observes",
        "description": "whether it keeps what the agent holds of the person, apart from what is "
        "held of the person in general",
        "default": True,
    },
    {
        "key": "dialectic_per_day",
        "description": "questions to its model a day (UTC) at most, over all workers; 0 for none",
        "default": 200,
    },
    {
        "key": "dialectic_timeout",
        "description": "seconds for one question to its model",
        "default": 30.0,
    },
)
