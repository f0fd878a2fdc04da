"""The options of an instance, read from its table."""

from typing import Annotated

from msgspec import Meta

from memorybus_providers.remote.options import ServerOptions, address, prefix_of


class MentisOptions(ServerOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of MentisDB."""

    base_url: Annotated[
        str,
        address("the REST port is 9472; 9471 speaks MCP", "the address of its REST server"),
    ] = "http://127.0.0.1:9472"
    prefix: Annotated[str, prefix_of("chains")] = "memorybus"
    timeout: Annotated[float, Meta(description="seconds for one request")] = 10.0
    results: Annotated[int, Meta(description="thoughts of one recall, 1 to 100")] = 10

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        known = ServerOptions.rules(self)
        return {**known, "results must be 1 to 100": 1 <= self.results <= 100}
