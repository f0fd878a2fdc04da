"""The providers: hooks in, calls of Mem0 out. Its library is imported when one is opened."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, ClassVar, Final

import msgspec
from memorybus.errors import MissingProvider, Permanent
from memorybus.events import Delegated, Event, MemoryWritten, ToolCalled, TurnCompleted

from memorybus_providers.base import (
    Capabilities,
    Delivery,
    HookContext,
    MemoryProvider,
    Placement,
    ProviderConfig,
    RecallContext,
    RecallScope,
    Recollection,
    Residue,
    StoredMemory,
)
from memorybus_providers.mem0 import memories, options, tools
from memorybus_providers.mem0.memories import STORES, Messages, Row
from memorybus_providers.mem0.options import LibraryOptions, Options, ServerOptions
from memorybus_providers.mem0.stores import Store
from memorybus_providers.remote import credentials
from memorybus_providers.remote.texts import sendable

_QUERY = 2_000
"""Characters of a question: an embedder reads no more of it with profit."""

_ERASING = 120.0
"""Seconds for one call of an erasure or an export."""

_HANDLED: Final[frozenset[type[Event]]] = frozenset({TurnCompleted, MemoryWritten, Delegated})


class _Mem0(MemoryProvider):
    """What library and server have in common.

    Delivery is ``lookup``: each event is a run, and what is in doubt is asked for by it. Where
    Mem0's model found nothing worth keeping, nothing is there to be found: it is asked once more.
    """

    delivery: ClassVar[Delivery] = "lookup"
    placement: ClassVar[Placement] = "shared"
    capabilities: ClassVar[Capabilities] = Capabilities(
        recall=True,
        tools=True,
        reading_tools=tools.READING,
        concurrent=True,
        retracts=True,
        forgets=True,
        exports=True,
        handles=_HANDLED,
    )
    fresh_options: ClassVar[tuple[str, ...]] = ("prefix",)
    tunable: ClassVar[frozenset[str]] = frozenset({"prefix", "results", "timeout"})
    options: Options

    def __init__(self, config: ProviderConfig) -> None:
        """Keep the configuration; nothing is asked.

        Raises:
            ConfigError: an option is wrong.
        """
        super().__init__(config)
        self._store: Store | None = None

    def _limit(self, given: Options) -> None:
        self.options = given
        self.time_limits = MappingProxyType(dict.fromkeys({*_HANDLED, ToolCalled}, given.timeout))

    # -- life ---------------------------------------------------------------------------------

    @abstractmethod
    def _opened(self) -> Store:
        """Return a store that is ready; raises ImportError for what is not installed."""

    def open(self) -> None:
        """Make a client.

        Raises:
            ConfigError: a key or file is named and not there.
            MissingProvider: what it needs is not installed.
            Transient, Unavailable: the library's store does not answer.
        """
        if self._store is not None:
            return
        try:
            self._store = self._opened()
        except ImportError as error:
            raise MissingProvider(
                f"provider {self.config.name} lacks a package ({error}); install it with: "
                f"pip install 'memorybus[{self.kind}]'"
            ) from error

    def shutdown(self) -> None:
        """Close the connections."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def health(self, deadline: float) -> str:
        """Ask for what nobody has: a service that is not well raises."""
        nobody = memories.Owner(self.options.prefix, self.options.prefix)
        self._ready.of_run(nobody, "health", deadline)
        return ""

    # -- write hooks --------------------------------------------------------------------------

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Remember a turn."""
        self._add("turn", memories.turn(event), ctx, infer=self.options.infer)

    def on_delegation(self, event: Delegated, ctx: HookContext) -> None:
        """Remember what a sub-agent did."""
        self._add("delegation", memories.delegation(event), ctx, infer=self.options.infer)

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Add, replace or remove an entry of one of the agent's stores, word for word.

        The old one goes first: whether the event was applied is told by the new one.
        """
        wanted = sendable(event.old_text)
        if event.action != "add" and wanted.strip():
            own = memories.filters_of(self.options.prefix, RecallScope.own(ctx.scope))
            filters = {**own, "kind": event.store}
            found = self._ready.containing(wanted, filters, ctx.deadline)
            old = [row for row in found if row.told("event") != ctx.event_id]
            if len({row.memory for row in old}) == 1:
                self._delete(old, ctx.deadline)
        if event.action != "remove":
            self._add(event.store, memories.entry(event), ctx, infer=False)

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Delete what came from turns, delegations and notes of this lineage."""
        owner = memories.owner_of(self.options.prefix, ctx.scope)
        mine = memories.metadata_of(self.options.prefix, "", ctx)
        for event_id in event_ids:
            found = self._ready.of_run(owner, sendable(event_id), ctx.deadline)
            gone = [row for row in found if row.told("kind") not in STORES]
            same = ("workspace", "root")
            gone = [row for row in gone if all(row.told(part) == mine[part] for part in same)]
            self._delete(gone, ctx.deadline)

    def knows(self, event_id: str, ctx: HookContext) -> bool:
        """Say whether Mem0 has something of an event."""
        owner = memories.owner_of(self.options.prefix, ctx.scope)
        return bool(self._ready.of_run(owner, event_id, ctx.deadline))

    def _add(self, kind: str, messages: Messages, ctx: HookContext, *, infer: bool) -> None:
        if not messages:
            return
        prefix = self.options.prefix
        self._ready.add(
            messages if infer else memories.together(messages),
            memories.owner_of(prefix, ctx.scope),
            ctx.event_id,
            memories.metadata_of(prefix, kind, ctx),
            infer=infer,
            deadline=ctx.deadline,
        )

    def _delete(self, rows: Sequence[Row], deadline: float) -> None:
        for row in rows:
            self._ready.delete(row.id, deadline)

    # -- what is kept of somebody -------------------------------------------------------------

    def forget(self, scope: RecallScope) -> Residue:
        """Delete all memories of a scope."""
        ids = memories.ids_of(self.options.prefix, scope)
        if ids and scope.workspace is None:
            self._ready.delete_all(ids, _ERASING)
            return Residue(None, self._ready.residue())
        rows = list(self._ready.listed(memories.filters_of(self.options.prefix, scope), _ERASING))
        self._delete(rows, _ERASING)
        return Residue(len(rows), self._ready.residue())

    def export(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield all memories of a scope."""
        filters = memories.filters_of(self.options.prefix, scope)
        for row in self._ready.listed(filters, _ERASING):
            yield memories.stored(row)

    # -- tools and recall ---------------------------------------------------------------------

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Return the memories that Mem0 finds nearest."""
        found = self._found(query, ctx.scope, self.options.results, ctx.deadline)
        return [memories.recollected(row) for row in found]

    def get_tool_schemas(self) -> Sequence[Mapping[str, Any]]:
        """Return the tools."""
        return tools.schemas()

    def handle_tool_call(
        self, tool: str, arguments: Mapping[str, Any], ctx: HookContext
    ) -> Mapping[str, Any]:
        """Run a tool; arguments that do not fit it are answered with an ``error``."""
        try:
            call = tools.read(tool, arguments)
        except msgspec.ValidationError as error:
            return {"error": str(error)}
        match call:
            case tools.Search():
                scope = RecallScope.own(ctx.scope)
                found = self._found(call.query, scope, call.top_k, ctx.deadline)
                return {"results": [{"text": row.memory, "score": row.score} for row in found]}
            case tools.Add():
                self._add("note", [{"role": "user", "content": sendable(call.content)}], ctx,
                          infer=False)  # fmt: skip
                return {"ok": True}

    def _found(self, query: str, scope: RecallScope, most: int, deadline: float) -> Sequence[Row]:
        asked = sendable(query)[:_QUERY]
        if not asked.strip():
            return ()
        filters = memories.filters_of(self.options.prefix, scope)
        return self._ready.search(asked, filters, most, deadline)

    @property
    def _ready(self) -> Store:
        if self._store is None:
            raise Permanent(f"provider {self.config.name} is not open")
        return self._store


class Mem0Provider(_Mem0):
    """Mem0's library, on a store that all workers reach."""

    kind: ClassVar[str] = "mem0"

    def __init__(self, config: ProviderConfig) -> None:
        """Keep the configuration.

        Raises:
            ConfigError: an option is wrong.
        """
        super().__init__(config)
        self._given = options.options_of(config, LibraryOptions)
        self._limit(self._given)

    @classmethod
    def is_available(cls, config: ProviderConfig) -> bool:
        """Say whether Mem0's library is installed."""
        return find_spec("mem0") is not None

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]]:
        """Return the options."""
        return options.LIBRARY

    def _opened(self) -> Store:
        from memorybus_providers.mem0 import library

        return library.opened(self.config, self._given)


class Mem0ServerProvider(_Mem0):
    """Mem0's self-hosted server."""

    kind: ClassVar[str] = "mem0-server"

    def __init__(self, config: ProviderConfig) -> None:
        """Keep the configuration.

        Raises:
            ConfigError: an option is wrong.
        """
        super().__init__(config)
        self._given = options.options_of(config, ServerOptions)
        self._limit(self._given)

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]]:
        """Return the options."""
        return options.SERVER

    def _opened(self) -> Store:
        from memorybus_providers.mem0.server import ServerStore

        return ServerStore(self._given, credentials.api_key(self.config), self.config.clock)
