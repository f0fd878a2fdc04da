"""The options of an instance, read from its table; imports nothing heavy."""

from typing import Annotated

from msgspec import Meta

from memorybus_providers.remote.options import (
    KeyFile,
    KeyVariable,
    RemoteOptions,
    address,
    address_rule,
)

_Prefix = Annotated[
    str,
    Meta(
        description="what the ids of its agents and persons begin with; lower-case letters, "
        "digits and -, at most 20"
    ),
]
_Infer = Annotated[
    bool,
    Meta(
        description="whether Mem0's model makes memories of what was said, which takes seconds; "
        "if not, it is kept verbatim"
    ),
]
_ConfigFile = Annotated[
    str,
    Meta(
        description="a JSON file that only its owner may read (0600) with what Mem0's "
        "Memory.from_config takes: vector_store, embedder, llm; the store is a server, such as "
        "pgvector"
    ),
]


class Mem0Options(RemoteOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options that the library and the server share."""

    prefix: _Prefix = "memorybus"
    infer: _Infer = True
    results: Annotated[int, Meta(description="memories of one recall, 1 to 100")] = 10
    timeout: Annotated[
        float, Meta(description="seconds for one write: Mem0's model reads the text meanwhile")
    ] = 60.0

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        known = RemoteOptions.rules(self)
        return {**known, "results must be 1 to 100": 1 <= self.results <= 100}


class LibraryOptions(Mem0Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of the library."""

    config_file: _ConfigFile


class Mem0ServerOptions(Mem0Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of the server."""

    base_url: Annotated[str, address("a server of your own; Mem0's cloud has another API")] = (
        "http://localhost:8888"
    )
    api_key_env: KeyVariable = ""
    api_key_file: KeyFile = ""

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        return {**address_rule(self.base_url), **Mem0Options.rules(self)}
