"""The options that say whose memories a command asks for; by default those of the settings."""

from dataclasses import dataclass
from typing import Annotated

import msgspec
from cyclopts import Parameter
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, MemoryBusError
from memorybus.events import Scope
from memorybus.query.query import Query

from memorybus_console.cli.options import FlagOption

WIDER_OPTIONS = "--all-users, --all-agents, --all-workspaces"

UserOption = Annotated[str | None, Parameter(help="The person.")]
AgentOption = Annotated[str | None, Parameter(help="The agent's identity.")]
WorkspaceOption = Annotated[str | None, Parameter(help="The workspace; '' for none.")]


class UnknownSession(MemoryBusError):
    """The log has no session of this id, or several people have one."""


class ScopeFilter(msgspec.Struct, frozen=True):
    """Whose memories are asked for; None means everyone's."""

    agent: str | None
    user: str | None
    workspace: str | None

    def __str__(self) -> str:
        """Return the scope in words."""
        agent = "every agent" if self.agent is None else f"agent {self.agent!r}"
        user = "every user" if self.user is None else f"user {self.user!r}"
        where = "every workspace" if self.workspace is None else f"workspace {self.workspace!r}"
        return f"{agent}, {user}, {where}"


@Parameter(name="*")
@dataclass(frozen=True)
class ScopeOptions:
    """Options that say whose memories; the settings decide what is not given."""

    user: UserOption = None
    agent: AgentOption = None
    workspace: WorkspaceOption = None
    all_users: Annotated[FlagOption, Parameter(help="Memories of every person.")] = False
    all_agents: Annotated[FlagOption, Parameter(help="Memories of every agent.")] = False
    all_workspaces: Annotated[FlagOption, Parameter(help="Memories of every workspace.")] = False

    def filter_for(self, own: Scope) -> ScopeFilter:
        """Return whose memories to ask for; `own` decides what no option gives.

        Raises:
            ConfigError: an option names one, and another asks for all.
        """
        return ScopeFilter(
            agent=_choose("agent", self.agent, own.agent, everyone=self.all_agents),
            user=_choose("user", self.user, own.user, everyone=self.all_users),
            workspace=_choose(
                "workspace", self.workspace, own.workspace, everyone=self.all_workspaces
            ),
        )


NO_SCOPE_OPTIONS = ScopeOptions()


def _choose(name: str, given: str | None, own: str, *, everyone: bool) -> str | None:
    if not everyone:
        return own if given is None else given
    if given is not None:
        raise ConfigError(f"--{name} and --all-{name}s exclude each other: give one")
    return None


def scope_of(settings: Settings) -> Scope:
    """Return the scope that the settings name."""
    return Scope(agent=settings.agent, user=settings.user, workspace=settings.workspace)


def scope_of_session(session: str, scope_options: ScopeOptions, settings: Settings) -> Scope:
    """Return the scope of a session; `scope_options` chooses between sessions with the same id.

    Raises:
        UnknownSession: no session has this id, or those of several people do.
    """
    from memorybus_console.operations import journal

    named = {
        "agents": scope_options.agent,
        "users": scope_options.user,
        "workspaces": scope_options.workspace,
    }
    words = {field: (word,) for field, word in named.items() if word is not None}
    query = msgspec.structs.replace(Query(sessions=(session,)), **words)
    events = journal.open_history(settings).scan(query)
    found = {msgspec.structs.replace(event.envelope.scope, platform="") for event in events}
    if not found:
        raise UnknownSession(f"no session {session!r} in the log; see: memorybus sessions tree")
    if len(found) > 1:
        said = "; ".join(sorted(str(NO_SCOPE_OPTIONS.filter_for(scope)) for scope in found))
        raise UnknownSession(
            f"several people have a session {session!r} ({said}); "
            "name whose: --user, --agent or --workspace"
        )
    return found.pop()
