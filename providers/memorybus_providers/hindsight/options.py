"""The options of an instance, read from its table; imports nothing heavy."""

from typing import Annotated, Literal

from msgspec import Meta

from memorybus_providers.remote.options import ServerOptions, address, prefix_of

Budget = Literal["low", "mid", "high"]  # how thoroughly Hindsight searches (``budget``)

_Seconds = Annotated[
    float, Meta(description="seconds for one write: Hindsight's model reads the text meanwhile")
]
_Queued = Annotated[
    bool,
    Meta(
        description="whether turns and delegations are put into Hindsight's own queue: an event "
        "then counts when it is queued, and what the queue fails on is shown by Hindsight alone"
    ),
]
_Prefetch = Annotated[
    Literal["recall", "reflect"],
    Meta(
        description="what a recall asks Hindsight for: memories (recall), or an answer that its "
        "model makes of them (reflect), which takes seconds"
    ),
]


class HindsightOptions(ServerOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of Hindsight."""

    base_url: Annotated[str, address("https://api.hindsight.vectorize.io for Hindsight Cloud")] = (
        "http://localhost:8888"
    )
    prefix: Annotated[str, prefix_of("banks")] = "memorybus"
    timeout: _Seconds = 60.0
    queued: _Queued = False
    prefetch: _Prefetch = "recall"
    recall_budget: Annotated[
        Budget, Meta(description="how thoroughly a recall searches: low, mid or high")
    ] = "mid"
    recall_tokens: Annotated[int, Meta(description="tokens of a recall at most")] = 4_096
    reflect_budget: Annotated[
        Budget, Meta(description="how thoroughly a reflection searches: low, mid or high")
    ] = "low"
    reflect_tokens: Annotated[int, Meta(description="tokens of a reflection at most")] = 1_024

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        positive = min(self.recall_tokens, self.reflect_tokens) >= 1
        return {
            **ServerOptions.rules(self),
            "recall_tokens and reflect_tokens must be positive": positive,
        }
