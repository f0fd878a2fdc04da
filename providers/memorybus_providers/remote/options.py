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
from typing import Any, Final, TypeVar

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


SCHEMA: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "key": "api_key_env",
        "description": "the name of the environment variable that holds the service's key",
        "default": "",
        "secret": True,
    },
    {
        "key": "api_key_file",
        "description": "a file with the service's key that only its owner may read (0600)",
        "default": "",
    },
)
"""The two options; a provider adds them to its own schema."""


def api_key(config: ProviderConfig) -> str:
    """Return an instance's key; "" if no option names one.

    Raises:
        ConfigError: both options are set, the variable is not set, or the file is missing, empty or
            readable by others.
    """
    variable = str(config.options.get("api_key_env") or "")
    file = str(config.options.get("api_key_file") or "")
    who = f"provider {config.name}"
    if variable and file:
        raise ConfigError(f"{who}: name api_key_env or api_key_file, not both")
    if variable:
        return environment_value("api_key_env", config)
    return _read_key_file(Path(file).expanduser(), who) if file else ""


def environment_value(option: str, config: ProviderConfig) -> str:
    """Return the value of the environment variable that an option names; "" if it names none.

    Raises:
        ConfigError: the variable is not set.
    """
    variable = str(config.options.get(option) or "")
    found = os.environ.get(variable, "").strip() if variable else ""
    if variable and not found:
        raise ConfigError(
            f"provider {config.name}: {option} names the environment variable "
            f"{variable[:100]!r}, which this process lacks; set it where the workers run"
        )
    return found


def _read_key_file(path: Path, who: str) -> str:
    if not (found := read_private(path, who, "api_key_file").strip()):
        raise ConfigError(f"{who}: {path} holds no key")
    return found


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
            found = file.read()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{who}: {option} cannot be read: {error}") from error
    if mode & _GROUP_AND_OTHERS:
        raise ConfigError(f"{who}: {path} is open to others; run: chmod 600 {path}")
    return found
