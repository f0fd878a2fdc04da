"""The options of an instance, read from its table."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from memorybus.errors import ConfigError

from memorybus_providers.base import ProviderConfig
from memorybus_providers.remote import credentials


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See `SCHEMA`, which describes each."""

    base_url: str = "http://127.0.0.1:9472"
    prefix: str = "memorybus"
    timeout: float = 10.0
    results: int = 10
    api_key_env: str = ""
    api_key_file: str = ""


SCHEMA: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "key": "base_url",
        "description": "the address of its REST server",
        "default": "http://127.0.0.1:9472",
        "hint": "the REST port is 9472; 9471 speaks MCP",
    },
    *credentials.SCHEMA,
    {
        "key": "prefix",
        "description": "what the names of its chains begin with: each agent, person and workspace "
        "has one of its own; lower-case letters, digits and -, at most 20",
        "default": "memorybus",
    },
    {"key": "timeout", "description": "seconds for one request", "default": 10.0},
    {"key": "results", "description": "thoughts of one recall, 1 to 100", "default": 10},
)

_PREFIX = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,18}[a-z0-9])?")


def options_of(config: ProviderConfig) -> Options:
    """Return an instance's options.

    Raises:
        ConfigError: one is unknown, of the wrong type or out of its bounds.
    """
    try:
        found = msgspec.convert(dict(config.options), Options)
    except msgspec.ValidationError as error:
        raise ConfigError(f"provider {config.name}: {error}") from error
    if not found.base_url.startswith(("http://", "https://")):
        raise ConfigError(f"provider {config.name}: base_url must begin with http:// or https://")
    if not _PREFIX.fullmatch(found.prefix):
        raise ConfigError(
            f"provider {config.name}: prefix must be 1 to 20 lower-case letters, digits and inner "
            "hyphens"
        )
    if not 1 <= found.results <= 100 or found.timeout <= 0:
        raise ConfigError(f"provider {config.name}: results must be 1 to 100, and timeout positive")
    return found
