"""Adapts providers of the nine-member contract to the bus: ``kind = "registry:module:Class"``.

`Class` (or any callable) is called without arguments and returns a provider of the contract in
`registry_members`, or several. Each owner (agent, person and workspace) has its own instances,
since the contract ties an instance to a ``session_key``. The key is made of the owner and not of
the session, so that a later session recalls what an earlier one remembered. A single provider gets
all options as its configuration; if there are several, each gets the options under its name.
One option is the adapter's own: ``compress_timeout``, the seconds that `on_compress` may take.

Several instances of the bus are better than several providers in one instance: each instance has
its own lanes, so one that fails does not delay the others.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from memorybus import private
from memorybus.errors import ConfigError
from memorybus.events import ContextCompressing, MemoryWritten, Message, StoreName, TurnCompleted

from memorybus_providers import registry
from memorybus_providers.adapters.conversations import Conversations, split_passages
from memorybus_providers.adapters.hosted import (
    Caller,
    as_object,
    call_in_parallel,
    classify_error,
    options,
)
from memorybus_providers.adapters.registry_members import (
    COMPRESS_DEADLINE,
    ENRICH_DEADLINE,
    SHUTDOWN_DEADLINE,
    RegisteredProvider,
    Registry,
    ToolProvider,
    kept_alone,
    shown_tools,
)
from memorybus_providers.base import (
    Capabilities,
    HookContext,
    MemoryProvider,
    ProviderConfig,
    RecallContext,
    Recollection,
)
from memorybus_providers.errors import Permanent
from memorybus_providers.owners import Owner, Owners, owner_of, session_key

MAX_INSTANCES = 64
"""The most owners with open instances; those of the least recently used are shut down (G10)."""

_EVICTION_SECONDS = 2.0
"""Seconds that a call waits until the instances of another owner are shut down."""

_COMPRESS_TIMEOUT = "compress_timeout"

_MAX_COMPRESS_SECONDS = 3_600
"""`compress_timeout` must be fewer seconds than this: a lane's lease lasts as long as the call."""

_log = logging.getLogger("memorybus")

Factory = Callable[[], RegisteredProvider | Iterable[RegisteredProvider]]


class RegistryProvider(MemoryProvider):
    """Adapts providers of the nine-member contract, which become one provider of the bus.

    Its delivery is ``blind``, since the contract has no event ids (G4). The state may be files, so
    it stays on one host, and writes come from one thread.
    """

    placement = "local"
    capabilities = Capabilities(
        recall=True, handles=frozenset({TurnCompleted, MemoryWritten, ContextCompressing})
    )
    factory: ClassVar[Factory]
    _registries: OrderedDict[Owner, Registry] | None = None

    def __init__(self, config: ProviderConfig) -> None:
        """Read the adapter's own option.

        Raises:
            ConfigError: its value is not a valid number of seconds.
        """
        super().__init__(config)
        self.time_limits = {ContextCompressing: _compress_timeout(config)}

    @property
    def kept_alone(self) -> frozenset[StoreName]:
        """The stores that the providers keep in the place of the agent's own files.

        Raises:
            ProviderError: a provider cannot tell its capabilities before it is initialised.
        """
        stores = [kept_alone(capabilities) for _, capabilities in self._capabilities_before_start()]
        return frozenset[StoreName]().union(*stores)

    def open(self) -> None:
        """Make what all owners share; an owner's instances are made when they are first needed.

        Raises:
            ConfigError: the factory makes something that is not a provider of the contract, or two
                with the same name.
        """
        private.directory(self.config.home)
        _check(self.kind, self._make_members())
        self._owners = Owners(self.config.home)
        self._caller = Caller(self.config.name)
        self._conversations = Conversations(self.config.home)
        self._options = options(self.config)
        self._options.pop(_COMPRESS_TIMEOUT, None)
        self._registries = OrderedDict()

    def shutdown(self) -> None:
        """Shut all instances down."""
        open_ones, self._registries = self._registries, None
        if open_ones is None:
            return
        ends = {session_key(owner): one.shutdown_all for owner, one in open_ones.items()}
        call_in_parallel(ends, SHUTDOWN_DEADLINE, self.config.clock)
        self._caller.close()

    def backup_paths(self) -> Sequence[Path]:
        """Return the home; other places of the hosted providers are not known."""
        return [self.config.home]

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Pass on a completed turn, and keep it for the recalls of its conversation."""
        self._conversations.note(owner_of(ctx.scope), ctx.session, ctx.event_id, event)
        self._tell(ctx, "on_turn_complete", event.user, event.assistant)

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Pass on a write; arguments that its action does not use are None."""
        content = None if event.action == "remove" else event.content
        old_text = None if event.action == "add" else event.old_text
        self._tell(ctx, "on_memory_write", event.action, event.store, content, old_text)

    def on_pre_compress(self, event: ContextCompressing, ctx: HookContext) -> str:
        """Pass on what is about to be compressed; the contract returns no text for the summary."""
        messages = [plain_message(message) for message in event.messages]
        self._tell(ctx, "on_compress", messages, event.compression_count)
        return ""

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Return the passages of what the providers add to a turn, in the order of providers.

        They get the prompt, and the session's latest turns followed by the prompt.
        """
        answers = [
            answer
            for owner in self._owners.owners_in(ctx.scope)
            for answer in self._enrich(owner, query, ctx)
        ]
        several = len({label for label, _ in answers}) > 1
        return [
            Recollection(part, speaker=label if several else "")
            for label, text in dict.fromkeys(answers)
            for part in split_passages(text)
        ]

    def _enrich(self, owner: Owner, query: str, ctx: RecallContext) -> Sequence[tuple[str, str]]:
        earlier = self._conversations.messages_of(owner, ctx.session)
        messages = [*earlier, {"role": "user", "content": query}]
        return self._registry(owner).enrich_turn(query, messages, ctx.deadline)

    def _tell(self, ctx: HookContext, method: str, *args: Any) -> None:
        owner = owner_of(ctx.scope)
        self._owners.note(owner)
        self._registry(owner).tell(ctx.event_id, method, *args, deadline=ctx.deadline)

    def _registry(self, owner: Owner) -> Registry:
        """Return an owner's instances; they are made if they are missing."""
        kept = self._registries
        if kept is None:
            raise Permanent(f"{self.kind} is not open")
        if owner not in kept:
            kept[owner] = self._start_registry(owner)
        kept.move_to_end(owner)
        if len(kept) > MAX_INSTANCES:
            kept.popitem(last=False)[1].shutdown_all(_EVICTION_SECONDS)
        return kept[owner]

    def _start_registry(self, owner: Owner) -> Registry:
        made = self._make_members()
        found = Registry(self._caller, self.config.clock)
        for provider in made:
            found.register(provider)
        config_of = self._config_of_several if len(made) > 1 else self._config_of_one
        found.initialize_all(session_key(owner), config_of)
        if found.foreign_tools:
            _log.info(
                "%s: the agent itself has to register %s", self.kind, sorted(found.foreign_tools)
            )
        return found

    def _capabilities_before_start(self) -> list[tuple[RegisteredProvider, Mapping[str, Any]]]:
        """Return new providers that are not initialised, each with its capabilities.

        Raises:
            ProviderError: a provider cannot tell its capabilities, or cannot be made.
        """
        caller = Caller(self.kind)
        try:
            return [
                (member, caller.call(self.kind, member.capabilities, deadline=ENRICH_DEADLINE))
                for member in self._make_members()
            ]
        finally:
            caller.close()

    def _make_members(self) -> list[RegisteredProvider]:
        try:
            made = type(self).factory()
            return list(made) if isinstance(made, Iterable) else [made]
        except Exception as error:
            raise classify_error(error, self.kind) from error

    def _config_of_one(self, name: str) -> dict[str, Any]:
        return dict(self._options)

    def _config_of_several(self, name: str) -> dict[str, Any]:
        config = self._options.get(name, {})
        return dict(config) if isinstance(config, Mapping) else {}


def _check(kind: str, made: Sequence[RegisteredProvider]) -> None:
    for provider in made:
        if not isinstance(provider, RegisteredProvider):
            raise ConfigError(
                f"{kind} made a {type(provider).__name__}, which lacks some of the contract"
            )
    trial = Registry(Caller(kind))
    try:
        for provider in made:
            trial.register(provider)
    except ValueError as error:
        raise ConfigError(f"{kind}: {error}") from error


class RegistryToolsProvider(RegistryProvider):
    """A single provider that brings tools. The model sees those in its ``tool_names``."""

    capabilities = msgspec.structs.replace(RegistryProvider.capabilities, tools=True)

    def get_tool_schemas(self) -> Sequence[Mapping[str, Any]]:
        """Return the schemas of the tools that are shown, without initialising the provider."""
        return [
            schema
            for provider, capabilities in self._capabilities_before_start()
            if isinstance(provider, ToolProvider)
            for schema in provider.get_tool_schemas()
            if _tool_name(schema) in shown_tools(capabilities)
        ]

    def handle_tool_call(
        self, tool: str, arguments: Mapping[str, Any], ctx: HookContext
    ) -> Mapping[str, Any]:
        """Run a tool; a call of a hidden tool is answered with an ``error``."""
        try:
            registry = self._registry(owner_of(ctx.scope))
            result = registry.call_tool(tool, arguments, ctx.deadline)
        except Permanent as error:  # the model must see the mistake; the event is not parked
            return {"error": str(error)}
        return as_object(result)


def host(target: str) -> type[MemoryProvider]:
    """Return the provider class of ``registry:<target>``; `target` has the form ``module:Class``.

    Raises:
        MissingProvider, ConfigError: see `registry.import_named`.
    """
    factory = registry.import_named(target)
    brings_tools = isinstance(factory, type) and issubclass(factory, ToolProvider)
    base = RegistryToolsProvider if brings_tools else RegistryProvider
    fields = {"kind": f"registry:{target}", "factory": staticmethod(factory)}
    return type("HostedRegistryProvider", (base,), fields)


def _compress_timeout(config: ProviderConfig) -> float:
    given = config.options.get(_COMPRESS_TIMEOUT, COMPRESS_DEADLINE)
    if (
        isinstance(given, bool)
        or not isinstance(given, int | float)
        or not 0 < given < _MAX_COMPRESS_SECONDS
    ):
        raise ConfigError(
            f"provider {config.name}: {_COMPRESS_TIMEOUT} is the seconds that a compression may "
            f"take, above 0 and below {_MAX_COMPRESS_SECONDS}, not {given!r}"
        )
    return float(given)


def _tool_name(schema: Mapping[str, Any]) -> Any:
    wrapped = schema.get("function")
    return (wrapped if isinstance(wrapped, Mapping) else schema).get("name")


def plain_message(message: Message) -> dict[str, str]:
    """Return a message in the contract's form: role and text, with the parts of the text joined."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(part for part in parts if isinstance(part, str))
    return {
        "role": str(message.get("role", "")),
        "content": content if isinstance(content, str) else "",
    }
