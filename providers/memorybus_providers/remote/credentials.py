"""Reads the key of a service from an environment variable or a private file.

The options only name the variable or the file. So the key itself is in no settings file, no record
in Redis and no list of processes.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from memorybus.errors import ConfigError

from memorybus_providers.base import ProviderConfig
from memorybus_providers.remote import private_file

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
    if not (found := private_file.read(path, who, "api_key_file").strip()):
        raise ConfigError(f"{who}: {path} holds no key")
    return found
