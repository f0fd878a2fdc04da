"""Reads the options of an instance into a struct, and checks them; pure.

A provider's struct inherits from `RemoteOptions` or `ServerOptions`, adds its own fields, and
returns further rules from `rules`. This module makes the rows that the schemas of services share.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from memorybus.errors import ConfigError
from memorybus.msgspec_types import prepared

from memorybus_providers.base import ProviderConfig

_PREFIX = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,18}[a-z0-9])?")

_HTTP = ("http://", "https://")


class RemoteOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of every service.

    Attributes:
        prefix: the beginning of all names in the service.
        timeout: the seconds for one request or one write, as the schema says.
    """

    prefix: str = "memorybus"
    timeout: float = 10.0

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        return {
            "prefix must be 1 to 20 lower-case letters, digits and inner hyphens": bool(
                _PREFIX.fullmatch(self.prefix)
            ),
            "timeout must be positive": self.timeout > 0,
        }


class ServerOptions(RemoteOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of every service that is a server.

    Attributes:
        base_url: the server's address.
        api_key_env: see `credentials`.
        api_key_file: see `credentials`.
    """

    base_url: str
    api_key_env: str = ""
    api_key_file: str = ""

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        return {**address_rule(self.base_url), **RemoteOptions.rules(self)}


T = TypeVar("T", bound=RemoteOptions)


def address_rule(base_url: str) -> dict[str, bool]:
    """Return the rule for addresses, with whether an address keeps it."""
    return {"base_url must begin with http:// or https://": base_url.startswith(_HTTP)}


def read(config: ProviderConfig, kind: type[T]) -> T:
    """Return an instance's options as a struct of type `kind`.

    Raises:
        ConfigError: an option is unknown or missing, has the wrong type, or breaks a rule.
    """
    try:
        found = msgspec.convert(dict(config.options), prepared(kind))
    except msgspec.ValidationError as error:
        raise ConfigError(f"provider {config.name}: {error}") from error
    if broken := [rule for rule, kept in found.rules().items() if not kept]:
        raise ConfigError(f"provider {config.name}: {'; '.join(broken)}")
    return found


def address_row(
    default: str, hint: str, description: str = "the server's address"
) -> Mapping[str, Any]:
    """Return the schema's row of ``base_url``."""
    return {"key": "base_url", "description": description, "default": default, "hint": hint}


def prefix_row(places: str) -> Mapping[str, Any]:
    """Return the schema's row of ``prefix``, for a service with a place for each owner."""
    return {
        "key": "prefix",
        "description": f"what the names of its {places} begin with: each agent, person and "
        "workspace has one of its own; lower-case letters, digits and -, at most 20",
        "default": "memorybus",
    }
