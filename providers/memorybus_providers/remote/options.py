"""Reads the options of an instance into a struct, and the key of its service; pure but for the key.

A provider's struct inherits from `RemoteOptions` or `ServerOptions`, adds its own fields, and
returns further rules from `rules`. The options only name the environment variable or the private
file with the key. So the key itself is in no settings file, no record in Redis and no list of
processes.
"""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from memorybus.errors import ConfigError
from msgspec import Meta

from memorybus_providers.base import ProviderConfig
from memorybus_providers.options import Options, option_rows

_PREFIX = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,18}[a-z0-9])?")

_PLACE = ("config_file", "base_url", "api_key_env", "api_key_file", "prefix")

_HTTP = ("http://", "https://")


class RemoteOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


KeyVariable = Annotated[
    str,
    Meta(
        description="the name of the environment variable that holds the service's key",
        extra={"secret": True},
    ),
]
KeyFile = Annotated[
    str, Meta(description="a file with the service's key that only its owner may read (0600)")
]


class ServerOptions(RemoteOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of every service that is a server.

    Attributes:
        base_url: the server's address.
        api_key_env: see `api_key`.
        api_key_file: see `api_key`.
    """

    base_url: str
    api_key_env: KeyVariable = ""
    api_key_file: KeyFile = ""

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        return {**address_rule(self.base_url), **RemoteOptions.rules(self)}


def address_rule(base_url: str) -> dict[str, bool]:
    """Return the rule for addresses, with whether an address keeps it."""
    return {"base_url must begin with http:// or https://": base_url.startswith(_HTTP)}


def address(hint: str, description: str = "the server's address") -> Meta:
    """Describe ``base_url``."""
    return Meta(description=description, extra={"hint": hint})


def prefix_of(places: str) -> Meta:
    """Describe ``prefix`` of a service with a place for each owner."""
    return Meta(
        description=f"what the names of its {places} begin with: each agent, person and workspace "
        "has one of its own; lower-case letters, digits and -, at most 20"
    )


def schema_of(options: type[RemoteOptions]) -> list[dict[str, Any]]:
    """Return the options as they are shown to people: where the service is comes first."""
    rows = option_rows(options)
    return sorted(rows, key=lambda row: _PLACE.index(row["key"]) if row["key"] in _PLACE else 9)


def api_key(config: ProviderConfig) -> str:
    """Return an instance's key; "" if no option names one.

    Raises:
        ConfigError: both options are set, the variable is not set, or the file is missing, empty or
            readable by others.
    """
    return key_of(config.options, f"provider {config.name}")


def key_of(options: Mapping[str, Any], who: str) -> str:
    """Return the key that options name; see `api_key`. `who` begins the errors."""
    file = str(options.get("api_key_file") or "")
    if options.get("api_key_env") and file:
        raise ConfigError(f"{who}: name api_key_env or api_key_file, not both")
    if file:
        return _read_key_file(Path(file).expanduser(), who)
    return _value_of("api_key_env", options, who)


def environment_value(option: str, config: ProviderConfig) -> str:
    """Return the value of the environment variable that an option names; "" if it names none.

    Raises:
        ConfigError: the variable is not set.
    """
    return _value_of(option, config.options, f"provider {config.name}")


def _value_of(option: str, options: Mapping[str, Any], who: str) -> str:
    variable = str(options.get(option) or "")
    value = os.environ.get(variable, "").strip() if variable else ""
    if variable and not value:
        raise ConfigError(
            f"{who}: {option} names the environment variable "
            f"{variable[:100]!r}, which this process lacks; set it where the workers run"
        )
    return value


def _read_key_file(path: Path, who: str) -> str:
    if not (key := read_private(path, who, "api_key_file").strip()):
        raise ConfigError(f"{who}: {path} holds no key")
    return key


_GROUP_AND_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_private(path: Path, who: str, option: str) -> str:
    """Return the content of a private file.

    Args:
        who: the words with which errors begin.
        option: the option that names the file.

    Raises:
        ConfigError: the file cannot be read, or others may read or write it.
    """
    try:
        with open(path, encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{who}: {option} cannot be read: {error}") from error
    if mode & _GROUP_AND_OTHERS:
        raise ConfigError(f"{who}: {path} is open to others; run: chmod 600 {path}")
    return content
