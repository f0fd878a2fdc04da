"""The options of an instance, read from its table; imports nothing heavy."""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from memorybus.errors import ConfigError

from memorybus_providers.base import ProviderConfig
from memorybus_providers.remote import credentials


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What library and server have in common; see `COMMON`."""

    prefix: str = "memorybus"
    infer: bool = True
    results: int = 10
    timeout: float = 60.0


class LibraryOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See `LIBRARY`."""

    config_file: str


class ServerOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See `SERVER`."""

    base_url: str = "http://localhost:8888"
    api_key_env: str = ""
    api_key_file: str = ""


_O = TypeVar("_O", bound=Options)

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
    {
        "key": "base_url",
        "description": "the server's address",
        "default": "http://localhost:8888",
        "hint": "a server of your own; Mem0's cloud has another API",
    },
    *credentials.SCHEMA,
    *COMMON,
)

_PREFIX = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,18}[a-z0-9])?")


def options_of(config: ProviderConfig, kind: type[_O]) -> _O:
    """Return an instance's options.

    Raises:
        ConfigError: one is unknown, missing, of the wrong type or out of its bounds.
    """
    try:
        found = msgspec.convert(dict(config.options), kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"provider {config.name}: {error}") from error
    if wrong := _wrong(found):
        raise ConfigError(f"provider {config.name}: {wrong}")
    return found


def _wrong(found: Options) -> str:
    """Return what is wrong with the options, "" if nothing."""
    if not _PREFIX.fullmatch(found.prefix):
        return "prefix must be 1 to 20 lower-case letters, digits and inner hyphens"
    if not 1 <= found.results <= 100:
        return "results must be 1 to 100"
    if found.timeout <= 0:
        return "timeout must be positive"
    if isinstance(found, ServerOptions) and not found.base_url.startswith(("http://", "https://")):
        return "base_url must begin with http:// or https://"
    return ""
