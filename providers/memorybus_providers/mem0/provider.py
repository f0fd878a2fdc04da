"""The hooks of both providers. Mem0's library is imported when an instance is opened."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from memorybus.events import Delegated, MemoryWritten, TurnCompleted

from memorybus_providers.base import (
    HookContext,
    ProviderConfig,
    RecallContext,
    RecallScope,
    Recollection,
    Residue,
    StoredMemory,
)
from memorybus_providers.mem0 import memories, tools
from memorybus_providers.mem0.memories import STORES, Mem0Memory, Messages
from memorybus_providers.mem0.options import LibraryOptions, Mem0Options, Mem0ServerOptions
from memorybus_providers.remote.provider import RemoteProvider, service_capabilities
from memorybus_providers.remote.texts import (
    clean_question,
    old_text,
    replaced_entries,
    sendable,
)

if TYPE_CHECKING:
    from memorybus_providers.mem0.library import LibraryStore
    from memorybus_providers.mem0.server import ServerStore

_Mem0Store: TypeAlias = "LibraryStore | ServerStore"

_ERASE_SECONDS = 120.0  # seconds for one call of an erasure or an export


class _Mem0(RemoteProvider["_Mem0Store"]):
    """The hooks that the library and the server have in common.

    Delivery is ``lookup``: each event is a run of Mem0, by which an event in doubt is looked up. If
    Mem0's model kept nothing of an event, the look-up finds nothing, and the event is sent again.
    """

    delivery = "lookup"
    capabilities = service_capabilities(
        tools.TOOLS, frozenset({TurnCompleted, MemoryWritten, Delegated})
    )
    toolset = tools.TOOLS
    tunable = frozenset({"prefix", "results", "timeout"})
    _options: Mem0Options

    def __init__(self, config: ProviderConfig) -> None:
        """Read the options; nothing is sent to Mem0.

        Raises:
            ConfigError: an option is wrong.
        """
        super().__init__(config)
        self.limit_writes(self._options.timeout)

    # -- health -------------------------------------------------------------------------------

    def health(self, deadline: float) -> str:
        """List memories of an owner that does not exist; this raises if the service is broken."""
        nobody = memories.OwnerIds(self._options.prefix, self._options.prefix)
        self.client.rows_of_run(nobody, "health", deadline)
        return ""

    # -- write hooks --------------------------------------------------------------------------

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Store what was said in a turn."""
        self._add("turn", memories.messages_of_turn(event), ctx, infer=self._options.infer)

    def on_delegation(self, event: Delegated, ctx: HookContext) -> None:
        """Store what a sub-agent did."""
        messages = memories.messages_of_delegation(event)
        self._add("delegation", messages, ctx, infer=self._options.infer)

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Add, replace or remove an entry of one of the agent's stores, word for word.

        The old entry is deleted before the new one is added, since the new one shows `knows` that
        the event was applied completely.
        """
        if wanted := old_text(event):
            own = memories.filters_of(self._options.prefix, RecallScope.own(ctx.scope))
            found = self.client.rows_containing(wanted, {**own, "kind": event.store}, ctx.deadline)
            others = [row for row in found if row.metadata_value("event") != ctx.event_id]
            self._delete(replaced_entries(event, others, lambda row: row.memory), ctx.deadline)
        if event.action != "remove":
            self._add(event.store, memories.messages_of_entry(event), ctx, infer=False)

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Delete the memories of these events of this lineage, except entries of the stores."""
        owner = memories.owner_ids(self._options.prefix, ctx.scope)
        mine = memories.metadata_of(self._options.prefix, "", ctx)
        same = ("workspace", "root")
        for event_id in event_ids:
            found = self.client.rows_of_run(owner, sendable(event_id), ctx.deadline)
            candidates = [row for row in found if row.metadata_value("kind") not in STORES]
            gone = [
                row
                for row in candidates
                if all(row.metadata_value(part) == mine[part] for part in same)
            ]
            self._delete(gone, ctx.deadline)

    def knows(self, event_id: str, ctx: HookContext) -> bool:
        """Return whether Mem0 has any memory of an event."""
        owner = memories.owner_ids(self._options.prefix, ctx.scope)
        return bool(self.client.rows_of_run(owner, event_id, ctx.deadline))

    def _add(self, kind: str, messages: Messages, ctx: HookContext, *, infer: bool) -> None:
        if not messages:
            return
        prefix = self._options.prefix
        self.client.add(
            messages if infer else memories.join_messages(messages),
            memories.owner_ids(prefix, ctx.scope),
            ctx.event_id,
            memories.metadata_of(prefix, kind, ctx),
            infer=infer,
            deadline=ctx.deadline,
        )

    def _delete(self, rows: Sequence[Mem0Memory], deadline: float) -> None:
        for row in rows:
            self.client.delete(row.id, deadline)

    # -- erasure and export -------------------------------------------------------------------

    def forget(self, scope: RecallScope) -> Residue:
        """Delete all memories of a scope."""
        ids = memories.ids_of(self._options.prefix, scope)
        if ids and scope.workspace is None:
            self.client.delete_all(ids, _ERASE_SECONDS)
            return Residue(None, self.client.residue())
        rows = list(
            self.client.list_rows(memories.filters_of(self._options.prefix, scope), _ERASE_SECONDS)
        )
        self._delete(rows, _ERASE_SECONDS)
        return Residue(len(rows), self.client.residue())

    def export(self, scope: RecallScope) -> Iterator[StoredMemory]:
        filters = memories.filters_of(self._options.prefix, scope)
        for row in self.client.list_rows(filters, _ERASE_SECONDS):
            yield memories.to_stored_memory(row)

    # -- tools and recall ---------------------------------------------------------------------

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Return the memories that Mem0 finds nearest to a question."""
        found = self._search(query, ctx.scope, self._options.results, ctx.deadline)
        return [memories.to_recollection(row) for row in found]

    def run_tool(self, call: tools.Mem0Call, ctx: HookContext) -> Mapping[str, Any]:
        match call:
            case tools.Mem0Search():
                scope = RecallScope.own(ctx.scope)
                found = self._search(call.query, scope, call.top_k, ctx.deadline)
                return {"results": [{"text": row.memory, "score": row.score} for row in found]}
            case tools.Mem0Add():
                self._add("note", [{"role": "user", "content": sendable(call.content)}], ctx,
                          infer=False)  # fmt: skip
                return {"ok": True}

    def _search(
        self, query: str, scope: RecallScope, most: int, deadline: float
    ) -> Sequence[Mem0Memory]:
        asked = clean_question(query)
        if not asked:
            return ()
        filters = memories.filters_of(self._options.prefix, scope)
        return self.client.search(asked, filters, most, deadline)


class Mem0Provider(_Mem0):
    """Keeps memories with Mem0's library, in a store that all workers can reach."""

    kind = "mem0"
    package = "mem0"
    options_type = LibraryOptions
    _options: LibraryOptions

    def connect(self) -> "_Mem0Store":
        """Return a store that is ready."""
        from memorybus_providers.mem0 import library

        return library.open_store(self.config, self._options)


class Mem0ServerProvider(_Mem0):
    """Keeps memories in a self-hosted server of Mem0."""

    kind = "mem0-server"
    package = "urllib3"
    options_type = Mem0ServerOptions
    _options: Mem0ServerOptions

    def connect(self) -> "_Mem0Store":
        """Return a store that is ready."""
        from memorybus_providers.mem0.server import ServerStore

        return ServerStore(self._options, self.api_key(), self.config.clock)
