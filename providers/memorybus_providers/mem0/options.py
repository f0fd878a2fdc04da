"""The options of an instance, read from its table; imports nothing heavy."""

from collections.abc import Mapping
from typing import Any, Final

from memorybus_providers.remote import options


class Mem0Options(options.RemoteOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options that the library and the server share; see `COMMON`."""

    infer: bool = True
    results: int = 10
    timeout: float = 60.0

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        known = options.RemoteOptions.rules(self)
        return {**known, "results must be 1 to 100": 1 <= self.results <= 100}


class LibraryOptions(Mem0Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of the library; see `LIBRARY`."""

    config_file: str


class Mem0ServerOptions(Mem0Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of the server; see `SERVER`."""

    base_url: str = "http://localhost:8888"
    api_key_env: str = ""
    api_key_file: str = ""

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        return {**options.address_rule(self.base_url), **Mem0Options.rules(self)}


COMMON: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "key": "prefix",
        "description": "what the ids of its agents and persons begin with; lower-case letters, "
        "digits and -, at most 20",
        "default": "memorybus",
    },
    {
        "key": "infer",
        "description": "whether Mem0's model makes memories of what was said, which takes seconds; "
        "if not, it is kept verbatim",
        "default": True,
    },
    {"key": "results", "description": "memories of one recall, 1 to 100", "default": 10},
    {
        "key": "timeout",
        "description": "seconds for one write: Mem0's model reads the text meanwhile",
        "default": 60.0,
    },
)
LIBRARY: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "key": "config_file",
        "description": "a JSON file that only its owner may read (0600) with what Mem0's "
        "Memory.from_config takes: vector_store, embedder, llm; the store is a server, such as "
        "pgvector",
        "required": True,
    },
    *COMMON,
)
SERVER: Final[tuple[Mapping[str, Any], ...]] = (
    options.address_row(
        "http://localhost:8888", "a server of your own; Mem0's cloud has another API"
    ),
    *options.SCHEMA,
    *COMMON,
)
