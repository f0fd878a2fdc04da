"""The options of an instance, read from its table."""

from collections.abc import Mapping
from typing import Any, Final

from memorybus_providers.remote import options


class MentisOptions(options.ServerOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options; `SCHEMA` describes each."""

    base_url: str = "http://127.0.0.1:9472"
    results: int = 10

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        known = options.ServerOptions.rules(self)
        return {**known, "results must be 1 to 100": 1 <= self.results <= 100}


SCHEMA: Final[tuple[Mapping[str, Any], ...]] = (
    options.address_row(
        "http://127.0.0.1:9472",
        "the REST port is 9472; 9471 speaks MCP",
        "the address of its REST server",
    ),
    *options.SCHEMA,
    options.prefix_row("chains"),
    {"key": "timeout", "description": "seconds for one request", "default": 10.0},
    {"key": "results", "description": "thoughts of one recall, 1 to 100", "default": 10},
)
