"""The options of an instance that hosts a plugin."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from memorybus.errors import ConfigError
from memorybus.msgspec_types import prepared

from memorybus_providers.base import ProviderConfig
from memorybus_providers.owners import Owner


class PluginOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options; `SCHEMA` describes each."""

    hermes_python: str = ""
    hermes_home: str = ""
    directory: str = ""
    settle: Literal["threads", "synchronous"] = "threads"
    agent: str = "default"
    user: str = "default"
    workspace: str = ""
    apart: bool = True
    instances: int = 32
    processes: int = 8
    idle: float = 5.0
    env: tuple[str, ...] = ()

    @property
    def home(self) -> Path | None:
        """The HERMES_HOME, if the options name one."""
        return Path(self.hermes_home).expanduser().absolute() if self.hermes_home else None

    @property
    def owner(self) -> Owner:
        """The owner of the instance's own HERMES_HOME."""
        return Owner(self.agent, self.user, self.workspace)


SCHEMA: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "key": "hermes_python",
        "description": "the Python of a Hermes installation; looked for if not given",
        "default": "",
    },
    {
        "key": "hermes_home",
        "description": "the plugin's HERMES_HOME; a directory of the instance's own if not given",
        "default": "",
    },
    {
        "key": "directory",
        "description": "the plugin's directory, if it is none of Hermes's own",
        "default": "",
    },
    {
        "key": "settle",
        "description": "when a write is over: threads (those that it began have ended, or wait for "
        "more work) or synchronous (its hook has returned)",
        "default": "threads",
    },
    {"key": "agent", "description": "whose hermes_home is: the agent", "default": "default"},
    {"key": "user", "description": "whose hermes_home is: the person", "default": "default"},
    {"key": "workspace", "description": "whose hermes_home is: the workspace", "default": ""},
    {
        "key": "apart",
        "description": "keep agents, persons and workspaces apart where the plugin does not: by a "
        "HERMES_HOME for each other owner, by user ids of their own, or, where all share a "
        "service's account, by refusing other owners' events; false lets everybody share",
        "default": True,
    },
    {"key": "instances", "description": "sessions open at once in a process", "default": 32},
    {"key": "processes", "description": "processes held at once", "default": 8},
    {"key": "idle", "description": "seconds after which an unused process ends", "default": 5.0},
    {
        "key": "env",
        "description": "names of environment variables the plugin needs, its API keys for example",
        "default": [],
    },
)


def options_of(config: ProviderConfig) -> PluginOptions:
    """Return an instance's options.

    Raises:
        ConfigError: an option is unknown, has the wrong type, or is not positive as it must be.
    """
    try:
        found = msgspec.convert(dict(config.options), prepared(PluginOptions))
    except msgspec.ValidationError as error:
        raise ConfigError(f"provider {config.name}: {error}") from error
    if min(found.instances, found.processes, found.idle) <= 0:
        raise ConfigError(f"provider {config.name}: instances, processes and idle must be positive")
    return found
