"""What commands have in common: their groups, options, validators, and the words of options."""

import getpass
import math
import re
import socket
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Group, Parameter, Token
from memorybus.clock import SYSTEM
from memorybus.config.settings import LogForm, LogLevel, Settings, config_path, load
from memorybus.errors import ConfigError, MemoryBusError
from memorybus.events import Scope
from memorybus.query.query import Query
from memorybus.text.display import iso
from memorybus.text.times import parse_ago, parse_timestamp

from memorybus_console.operations.settings import MEANINGS
from memorybus_console.views.output import Output

RUN = Group("Run", sort_key=1)
MEMORIES = Group("Memories", sort_key=2)
INSPECT = Group("Inspect", sort_key=3)
OPERATE = Group("Operate", sort_key=4)

FlagOption = Annotated[bool, Parameter(negative="")]
RepeatedOption = Annotated[list[str] | None, Parameter(negative="", consume_multiple=False)]
InstanceOption = Annotated[str, Parameter(help="The provider instance.")]


@Parameter(name="*")
@dataclass(frozen=True)
class Common:
    """The options of every command; memorybus.toml and MEMORYBUS_* may set them too."""

    json: Annotated[bool, Parameter(negative="", help="Print the result as JSON.")] = False
    url: Annotated[str | None, Parameter(help=MEANINGS["url"])] = None
    data_dir: Annotated[Path | None, Parameter(help=MEANINGS["data_dir"])] = None
    namespace: Annotated[str | None, Parameter(help=MEANINGS["namespace"])] = None

    def settings(self) -> Settings:
        """Return the settings: file, environment, then these options."""
        return load(**self.overrides())

    def overrides(self) -> dict[str, Any]:
        """Return the settings that these options override; None for those not given."""
        return {
            "url": self.url,
            "data_dir": None if self.data_dir is None else self.data_dir.absolute(),
            "namespace": self.namespace,
        }

    def output(self) -> Output:
        return Output(json=self.json)


DEFAULT = Common()


def settings_file() -> str:
    """Return the absolute path of the settings file that commands read here; "" if none."""
    path = config_path()
    return str(path.absolute()) if path else ""


def to_absolute_time(_: Any, tokens: Sequence[Token]) -> str:
    """Convert an argument that says how long ago (``2h``, ``7d``) to its time in ISO 8601."""
    text = tokens[0].value
    at = parse_ago(text, SYSTEM.now_ms())
    return (at and iso(at)) or text


def positive(_: Any, value: float | None) -> None:
    """Validate that a number, if one is given, is more than 0."""
    if value is not None and not 0 < value < math.inf:
        raise ValueError("It must be a number greater than 0.")


def not_negative(_: Any, value: float | None) -> None:
    if value is not None and not 0 <= value < math.inf:
        raise ValueError("It must be a number, 0 or greater.")


def check_time(_: Any, text: str | None) -> None:
    try:
        parse_timestamp(text or 0)
    except ValueError:
        raise ValueError(
            "Give an ISO 8601 time (2026-05-31T18:00), or how long ago (2h)."
        ) from None


def check_names(_: Any, text: str | None) -> None:
    """Validate that a list, if one is given, has at least one name."""
    if text is not None and not split_names(text):
        raise ValueError("It must have at least one name.")


def split_names(text: str | None) -> tuple[str, ...]:
    """Return the names of a comma-separated list."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


_WORKER_SETTINGS = ("concurrency", "capacity", "grace", "log", "log_level")
"""The settings that `WorkerOptions` overrides in addition."""


@Parameter(name="*")
@dataclass(frozen=True)
class WorkerOptions(Common):
    """The options of a command that runs workers until it is stopped."""

    json: Annotated[
        bool, Parameter(negative="", help="Print one JSON line each time a worker is ready.")
    ] = False
    concurrency: Annotated[
        int | None, Parameter(help=MEANINGS["concurrency"], validator=positive)
    ] = None
    capacity: Annotated[float | None, Parameter(help=MEANINGS["capacity"], validator=positive)] = (
        None
    )
    grace: Annotated[float | None, Parameter(help=MEANINGS["grace"], validator=positive)] = None
    log: Annotated[LogForm | None, Parameter(help=MEANINGS["log"])] = None
    log_level: Annotated[LogLevel | None, Parameter(help=MEANINGS["log_level"])] = None

    def overrides(self) -> dict[str, Any]:
        """Return the settings that these options override; None for those not given."""
        own = {name: getattr(self, name) for name in _WORKER_SETTINGS}
        return super().overrides() | own


DEFAULT_WORKER = WorkerOptions()


def operator() -> str:
    """Return who runs the command, as ``user@host``; it is recorded with what they do."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


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
        """Return whose memories to ask for; `own` decides what no option gives."""
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


def scope_of_session(session: str, scope_options: ScopeOptions, settings: Settings) -> Scope:
    """Return the scope of a session; `scope_options` chooses between sessions with the same id."""
    from memorybus_console.operations import journal

    named = {
        "agents": scope_options.agent,
        "users": scope_options.user,
        "workspaces": scope_options.workspace,
    }
    words = {field: (word,) for field, word in named.items() if word is not None}
    query = msgspec.structs.replace(Query(sessions=(session,)), **words)
    events = journal.open_history(settings).scan(query)
    scopes = {msgspec.structs.replace(event.envelope.scope, platform="") for event in events}
    if not scopes:
        raise UnknownSession(f"no session {session!r} in the log; see: memorybus sessions tree")
    if len(scopes) > 1:
        owners = "; ".join(sorted(str(NO_SCOPE_OPTIONS.filter_for(scope)) for scope in scopes))
        raise UnknownSession(
            f"several people have a session {session!r} ({owners}); "
            "name whose: --user, --agent or --workspace"
        )
    return scopes.pop()


_SECRET = re.compile(r"(^|_)(key|token|password|secret|credentials?)$", re.IGNORECASE)


def parse_key_values(words: Sequence[str]) -> dict[str, Any]:
    """Return the values of ``key=value`` words: numbers, true, false and lists as in TOML.

    A number that JSON does not have, like ``inf``, stays a text.
    """
    values: dict[str, Any] = {}
    for word in words:
        name, value = split_word(word)
        refuse_secret(name)
        values[name] = _parse_value(value)
    return values


def split_word(word: str) -> tuple[str, str]:
    """Return the name and the value of a ``key=value`` word."""
    name, equals, value = word.partition("=")
    if not (name and equals):
        raise ConfigError(f"{word!r} must read NAME=VALUE")
    return name, value


def refuse_secret(name: str) -> None:
    """Refuse an option that holds a secret, judging by its name."""
    if _SECRET.search(name):
        raise ConfigError(
            f"{name}: a secret belongs in no command line and no settings file; put it into the "
            f"environment of the workers under the name that the backend reads"
        )


def _parse_value(text: str) -> Any:
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return text if _is_infinite(value) else value


def _is_infinite(value: Any) -> bool:
    """Return whether a value is inf or nan, which JSON cannot hold."""
    return isinstance(value, float) and not math.isfinite(value)
