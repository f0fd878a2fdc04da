"""The options of an instance that hosts a plugin."""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from memorybus_providers.options import Options
from memorybus_providers.owners import Owner

_Settle = Annotated[
    Literal["threads", "synchronous"],
    Meta(
        description="when a write is over: threads (those that it began have ended, or wait for "
        "more work) or synchronous (its hook has returned)"
    ),
]
_Apart = Annotated[
    bool,
    Meta(
        description="keep agents, persons and workspaces apart where the plugin does not: by a "
        "HERMES_HOME for each other owner, by user ids of their own, or, where all share a "
        "service's account, by refusing other owners' events; false lets everybody share"
    ),
]
_Variables = Annotated[
    tuple[str, ...],
    Meta(description="names of environment variables the plugin needs, its API keys for example"),
]


class PluginOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of an instance."""

    hermes_python: Annotated[
        str, Meta(description="the Python of a Hermes installation; looked for if not given")
    ] = ""
    hermes_home: Annotated[
        str,
        Meta(
            description="the plugin's HERMES_HOME; a directory of the instance's own if not given"
        ),
    ] = ""
    directory: Annotated[
        str, Meta(description="the plugin's directory, if it is none of Hermes's own")
    ] = ""
    settle: _Settle = "threads"
    agent: Annotated[str, Meta(description="whose hermes_home is: the agent")] = "default"
    user: Annotated[str, Meta(description="whose hermes_home is: the person")] = "default"
    workspace: Annotated[str, Meta(description="whose hermes_home is: the workspace")] = ""
    apart: _Apart = True
    instances: Annotated[int, Meta(description="sessions open at once in a process")] = 32
    processes: Annotated[int, Meta(description="processes held at once")] = 8
    idle: Annotated[float, Meta(description="seconds after which an unused process ends")] = 5.0
    env: _Variables = ()

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        least = min(self.instances, self.processes, self.idle)
        return {"instances, processes and idle must be positive": least > 0}

    @property
    def home(self) -> Path | None:
        """The HERMES_HOME, if the options name one."""
        return Path(self.hermes_home).expanduser().absolute() if self.hermes_home else None

    @property
    def owner(self) -> Owner:
        """The owner of the instance's own HERMES_HOME."""
        return Owner(self.agent, self.user, self.workspace)
