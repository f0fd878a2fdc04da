"""The options of an instance, read from its table."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from memorybus_providers.base import ProviderConfig
from memorybus_providers.remote import credentials, own_options


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


def options_of(config: ProviderConfig) -> Options:
    """Return an instance's options.

    Raises:
        ConfigError: one is unknown, of the wrong type or out of its bounds.
    """
    found = own_options.converted(config, Options)
    rules = {
        own_options.URL_RULE: own_options.is_url(found.base_url),
        own_options.PREFIX_RULE: own_options.is_prefix(found.prefix),
        "results must be 1 to 100": 1 <= found.results <= 100,
        "timeout must be positive": found.timeout > 0,
    }
    own_options.check(config, rules)
    return found
