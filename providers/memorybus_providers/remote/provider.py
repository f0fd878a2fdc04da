"""The shell of a provider of a service: its client's life, and the way of its tools.

A subclass names what it is, connects, and says what its hooks and tools do.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from memorybus.events import Event, ToolCalled

from memorybus_providers.base import (
    Capabilities,
    HookContext,
    MemoryProvider,
    Placement,
    ProviderConfig,
)
from memorybus_providers.errors import MissingProvider, Permanent
from memorybus_providers.remote.tool_calls import ToolSet


class Client(Protocol):
    """What a provider holds while it is open."""

    def close(self) -> None:
        """Close the connections."""


C = TypeVar("C", bound=Client)


def able(
    tools: ToolSet[Any], handles: frozenset[type[Event]], *, retracts: bool = True
) -> Capabilities:
    """Return what a provider of a service can: all but what is its own.

    Args:
        tools: its tools.
        handles: the events of its write hooks.
        retracts: whether it defines `retract`; else a switch's hook does it.
    """
    return Capabilities(
        recall=True,
        tools=True,
        reading_tools=tools.reading,
        concurrent=True,
        retracts=retracts,
        forgets=True,
        exports=True,
        handles=handles,
    )


class RemoteProvider(MemoryProvider, Generic[C]):
    """A service that any number of workers reach, each owner at a name that begins with `prefix`.

    Attributes:
        package: the module of its client; without it no instance can be opened.
        schema: the options.
        toolset: the tools.
    """

    placement: ClassVar[Placement] = "shared"
    fresh_options: ClassVar[tuple[str, ...]] = ("prefix",)
    package: ClassVar[str]
    schema: ClassVar[Sequence[Mapping[str, Any]]]
    toolset: ClassVar[ToolSet[Any]]

    def __init__(self, config: ProviderConfig) -> None:
        """Keep the configuration; nothing is asked."""
        super().__init__(config)
        self._client: C | None = None

    @abstractmethod
    def connect(self) -> C:
        """Return a client, which may ask nothing before its first call.

        Import what it needs here: an ImportError becomes advice on what to install.
        """

    @abstractmethod
    def run(self, call: Any, ctx: HookContext) -> Mapping[str, Any]:
        """Run a tool whose arguments fit."""

    # -- life ---------------------------------------------------------------------------------

    @classmethod
    def is_available(cls, config: ProviderConfig) -> bool:
        """Say whether the client is installed."""
        return find_spec(cls.package) is not None

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]]:
        """Return the options."""
        return cls.schema

    def open(self) -> None:
        """Connect.

        Raises:
            ConfigError: a key or a file is named and not there.
            MissingProvider: what it needs is not installed.
        """
        if self._client is not None:
            return
        try:
            self._client = self.connect()
        except ImportError as error:
            raise MissingProvider(
                f"provider {self.config.name} lacks a package ({error}); install it with: "
                f"pip install 'memorybus[{self.kind}]'"
            ) from error

    def shutdown(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

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
        """Let each write hook and tool take so many seconds: a model may read what is written."""
        hooks = self.capabilities.handles | {ToolCalled}
        self.time_limits = MappingProxyType(dict.fromkeys(hooks, seconds))

    # -- tools --------------------------------------------------------------------------------

    def get_tool_schemas(self) -> Sequence[Mapping[str, Any]]:
        """Return the tools."""
        return self.toolset.schemas()

    def handle_tool_call(
        self, tool: str, arguments: Mapping[str, Any], ctx: HookContext
    ) -> Mapping[str, Any]:
        """Run a tool; arguments that do not fit it are answered with an ``error``."""
        call = self.toolset.parsed(tool, arguments)
        return {"error": call} if isinstance(call, str) else self.run(call, ctx)
