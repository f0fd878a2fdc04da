"""The options of an instance, read from its table; imports nothing heavy."""

from typing import Annotated

from msgspec import Meta

from memorybus_providers.remote.options import ServerOptions, address, prefix_of

_Address = Annotated[
    str,
    address(
        "Enter for Honcho's own",
        "the server's address: Honcho's own, or yours (http://localhost:8000)",
    ),
]
_Observes = Annotated[
    bool,
    Meta(
        description="whether it keeps what the agent holds of the person, apart from what is held "
        "of the person in general"
    ),
]
_Daily = Annotated[
    int,
    Meta(description="questions to its model a day (UTC) at most, over all workers; 0 for none"),
]


class HonchoOptions(ServerOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of Honcho."""

    base_url: _Address = "https://api.honcho.dev"
    prefix: Annotated[str, prefix_of("workspaces")] = "memorybus"
    timeout: Annotated[float, Meta(description="seconds for one request")] = 10.0
    results: Annotated[
        int, Meta(description="messages, and conclusions, of one recall, 1 to 100")
    ] = 10
    context_ttl: Annotated[
        float,
        Meta(description="seconds for which the base context (card, representation) is kept"),
    ] = 300.0
    observe_person: Annotated[bool, Meta(description="whether Honcho reasons about the person")] = (
        True
    )
    person_observes: Annotated[
        bool, Meta(description="whether it keeps what the person holds of the agent")
    ] = False
    observe_agent: Annotated[bool, Meta(description="whether Honcho reasons about the agent")] = (
        False
    )
    agent_observes: _Observes = True
    dialectic_per_day: _Daily = 200
    dialectic_timeout: Annotated[
        float, Meta(description="seconds for one question to its model")
    ] = 30.0

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        least = min(self.context_ttl, self.dialectic_per_day)
        return {
            **ServerOptions.rules(self),
            "results must be 1 to 100": 1 <= self.results <= 100,
            "dialectic_timeout must be positive": self.dialectic_timeout > 0,
            "context_ttl and dialectic_per_day must not be negative": least >= 0,
        }
