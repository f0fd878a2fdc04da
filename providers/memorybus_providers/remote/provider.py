"""The base class of providers of services: it opens and closes the client, and runs tools.

A subclass names its kind and options, connects, and defines what its hooks and tools do. A tool is
described to a model by the struct of its arguments.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import msgspec
from memorybus.errors import install_command
from memorybus.events import Event, ToolCalled
from memorybus.msgspec_types import prepared

from memorybus_providers.base import (
    Capabilities,
    HookContext,
    MemoryProvider,
    Placement,
    ProviderConfig,
    argument_schema,
)
from memorybus_providers.errors import MissingProvider, Permanent
from memorybus_providers.options import read_options
from memorybus_providers.remote import options
from memorybus_providers.remote.options import RemoteOptions

T = TypeVar("T", bound=msgspec.Struct)


class RemoteTool(NamedTuple, Generic[T]):
    """A tool of a service.

    Attributes:
        arguments: the struct of its arguments; the model sees the fields and their annotations.
        description: what the model reads about the tool.
        reads: whether it only reads.
    """

    arguments: type[T]
    description: str
    reads: bool = False


class ToolSet(Generic[T]):
    """The tools of a provider by name.

    Attributes:
        reading: the names of the tools that only read.
    """

    def __init__(self, tools: Mapping[str, RemoteTool[T]]) -> None:
        self._tools = MappingProxyType(dict(tools))
        self.reading = frozenset(name for name, tool in tools.items() if tool.reads)

    def schemas(self) -> list[dict[str, Any]]:
        """Return the tools as OpenAI functions: ``name``, ``description``, ``parameters``."""
        return [
            {
                "name": name,
                "description": tool.description,
                "parameters": argument_schema(tool.arguments),
            }
            for name, tool in self._tools.items()
        ]

    def parse_arguments(self, name: str, arguments: Mapping[str, Any]) -> T | str:
        """Return a call's arguments, or what is wrong with them in a sentence for the model."""
        tool = self._tools.get(name)
        if tool is None:
            return f"there is no tool {name[:100]!r}; there are {', '.join(self._tools)}"
        try:
            return msgspec.convert(dict(arguments), prepared(tool.arguments))
        except msgspec.ValidationError as error:
            return f"{name}: {error}"


class Client(Protocol):
    """The connection to a service that a provider keeps while it is open."""

    def close(self) -> None:
        """Close the connections."""


C = TypeVar("C", bound=Client)


def service_capabilities(
    tools: ToolSet[Any],
    handles: frozenset[type[Event]],
    *,
    retracts: bool = True,
    forgets: bool = True,
) -> Capabilities:
    """Return the capabilities that all providers of services have.

    Args:
        tools: the provider's tools.
        handles: the events of its write hooks.
        retracts: whether it defines `retract`; if not, its hook for session switches retracts.
        forgets: whether the service can erase what it has of somebody.
    """
    return Capabilities(
        recall=True,
        tools=True,
        reading_tools=tools.reading,
        concurrent=True,
        retracts=retracts,
        forgets=forgets,
        exports=True,
        handles=handles,
    )


class RemoteProvider(MemoryProvider, Generic[C]):
    """A provider of a service that any number of workers can reach.

    Everything that the service keeps for an owner has a name that begins with the option `prefix`.

    Attributes:
        package: the module of the service's client; without it no instance can be opened.
        options_type: the struct of its options.
        toolset: the tools.
    """

    placement: ClassVar[Placement] = "shared"
    fresh_options: ClassVar[tuple[str, ...]] = ("prefix",)
    package: ClassVar[str]
    options_type: ClassVar[type[RemoteOptions]]
    toolset: ClassVar[ToolSet[Any]]

    def __init__(self, config: ProviderConfig) -> None:
        """Read the options; nothing is sent to the service.

        Raises:
            ConfigError: an option is wrong.
        """
        super().__init__(config)
        self._options: Any = read_options(config, self.options_type)
        self._client: C | None = None

    @abstractmethod
    def connect(self) -> C:
        """Return a client, which may connect at its first call only.

        Import the client's library here: an ImportError becomes advice on what to install.
        """

    @abstractmethod
    def run_tool(self, call: Any, ctx: HookContext) -> Mapping[str, Any]:
        """Run a tool; `call` is the struct of its arguments, which have been checked."""

    # -- opening and closing ------------------------------------------------------------------

    @classmethod
    def is_available(cls, config: ProviderConfig) -> bool:
        """Return whether the client is installed."""
        return find_spec(cls.package) is not None

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]]:
        """Return the options."""
        return options.schema_of(cls.options_type)

    def open(self) -> None:
        """Make the client, unless the instance is open already.

        Raises:
            ConfigError: a key or a file that the options name is missing.
            MissingProvider: a package that the provider needs is not installed.
        """
        if self._client is not None:
            return
        try:
            self._client = self.connect()
        except ImportError as error:
            raise MissingProvider(
                f"provider {self.config.name} lacks a package ({error}); run: "
                f"{install_command(self.kind)}"
            ) from error

    def shutdown(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def api_key(self) -> str:
        """Return the account's key; see `options.api_key`."""
        return options.api_key(self.config)

    @property
    def client(self) -> C:
        """The open client.

        Raises:
            Permanent: the instance is not open.
        """
        if self._client is None:
            raise Permanent(f"provider {self.config.name} is not open")
        return self._client

    def limit_writes(self, seconds: float) -> None:
        """Let each write hook and tool take `seconds`, since a model may read what is written."""
        hooks = self.capabilities.handles | {ToolCalled}
        self.time_limits = MappingProxyType(dict.fromkeys(hooks, seconds))

    # -- tools --------------------------------------------------------------------------------

    def get_tool_schemas(self) -> Sequence[Mapping[str, Any]]:
        """Return the schemas of the tools."""
        return self.toolset.schemas()

    def handle_tool_call(
        self, tool: str, arguments: Mapping[str, Any], ctx: HookContext
    ) -> Mapping[str, Any]:
        """Run a tool; wrong arguments are answered with an ``error``."""
        call = self.toolset.parse_arguments(tool, arguments)
        return {"error": call} if isinstance(call, str) else self.run_tool(call, ctx)
