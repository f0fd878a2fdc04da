"""An instance's table of options as a struct, checked; pure."""

import re
from collections.abc import Mapping
from typing import TypeVar

import msgspec
from memorybus.errors import ConfigError

from memorybus_providers.base import ProviderConfig

T = TypeVar("T", bound=msgspec.Struct)

PREFIX_RULE = "prefix must be 1 to 20 lower-case letters, digits and inner hyphens"

URL_RULE = "base_url must begin with http:// or https://"

_PREFIX = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,18}[a-z0-9])?")


def converted(config: ProviderConfig, kind: type[T]) -> T:
    """Return the options as a struct.

    Raises:
        ConfigError: one is unknown or of the wrong type.
    """
    try:
        return msgspec.convert(dict(config.options), kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"provider {config.name}: {error}") from error


def check(config: ProviderConfig, rules: Mapping[str, bool]) -> None:
    """Return if all rules are kept.

    Raises:
        ConfigError: it says which are not.
    """
    if broken := [rule for rule, kept in rules.items() if not kept]:
        raise ConfigError(f"provider {config.name}: {'; '.join(broken)}")


def is_prefix(text: str) -> bool:
    """Say whether names in a service may begin with a text."""
    return _PREFIX.fullmatch(text) is not None


def is_url(text: str) -> bool:
    """Say whether a text is an address that requests can go to."""
    return text.startswith(("http://", "https://"))
