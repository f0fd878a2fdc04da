"""The provider's hooks. Hindsight's client is imported when an instance is opened."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memorybus.errors import ProviderError, Transient
from memorybus.events import Delegated, MemoryWritten, Scope, TurnCompleted

from memorybus_providers.base import (
    HookContext,
    ProviderConfig,
    RecallContext,
    RecallScope,
    Recollection,
    Residue,
    StoredMemory,
    TurnCall,
)
from memorybus_providers.hindsight import documents, options, tools
from memorybus_providers.hindsight.documents import (
    STORES,
    Document,
    StoredDocument,
    bank_of,
    document_of_write,
    store_tag,
    tags_of,
)
from memorybus_providers.owners import single_owner
from memorybus_providers.remote.provider import RemoteProvider, service_capabilities
from memorybus_providers.remote.texts import old_text, replaced_entries, sendable

if TYPE_CHECKING:
    from hindsight_client_api.models.recall_result import RecallResult

    from memorybus_providers.hindsight.calls import Calls, HindsightService


_MAX_QUERY_CHARS = 2_000
"""The most characters of a question that are sent: Hindsight reads only 500 tokens of it."""

_MAX_BANKS = 32
"""The most banks that one recall searches, those last written; only a recall for several owners
needs more than one."""

_CHARS_PER_TOKEN = 4  # about how many characters a token has

_ERASE_SECONDS = 120.0  # seconds that an erasure or an export may take for one bank

_WORD = re.compile(r"[^\W_]")
_TRACES = (
    "Hindsight keeps what it asked its model, texts included, in its table llm_requests for "
    "HINDSIGHT_API_LLM_TRACE_RETENTION_DAYS (1); set HINDSIGHT_API_LLM_TRACE_ENABLED=false, or "
    "delete these rows"
)


class HindsightProvider(RemoteProvider["HindsightService"]):
    """Retains events in Hindsight, and recalls the memories that it derives from them.

    Delivery is ``keyed``: each event is a document whose name is the event's id, and a repeated
    document replaces the first one and all that was derived from it. A `queued` document gets an
    operation id that is derived from its bank, the event and its text.
    """

    kind = "hindsight"
    delivery = "keyed"
    capabilities = service_capabilities(
        tools.TOOLS, frozenset({TurnCompleted, MemoryWritten, Delegated})
    )
    package = "hindsight_client"
    options_type = options.HindsightOptions
    _options: options.HindsightOptions
    toolset = tools.TOOLS
    tunable = frozenset(
        {
            "prefix",
            "timeout",
            "recall_budget",
            "recall_tokens",
            "reflect_budget",
            "reflect_tokens",
        }
    )
    bulk_turns = 16

    def __init__(self, config: ProviderConfig) -> None:
        """Read the options; nothing is sent to the service.

        Raises:
            ConfigError: an option is wrong.
        """
        super().__init__(config)
        self.limit_writes(self._options.timeout)

    # -- opening ------------------------------------------------------------------------------

    def connect(self) -> "HindsightService":
        """Make a client; the first call connects to the server."""
        from memorybus_providers.hindsight.calls import HindsightService

        key = self.api_key()
        return HindsightService(self.config.name, self._options, key, self.config.clock)

    def health(self, deadline: float) -> str:
        """Return what does not work with the server's settings; "" if everything works."""
        if self._calls(deadline).features().store_document_text:
            return ""
        return (
            "Hindsight keeps no texts (HINDSIGHT_API_STORE_DOCUMENT_TEXT is false): entries of the "
            "stores cannot be replaced or removed"
        )

    # -- write hooks --------------------------------------------------------------------------

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Retain a turn."""
        if document := documents.document_of_turn(event, ctx):
            self._retain(document, ctx)

    def sync_turns(self, turns: Sequence[TurnCall]) -> Mapping[str, ProviderError]:
        """Retain turns with one request for each owner."""
        if self._options.queued:
            return super().sync_turns(turns)
        by_bank: dict[str, list[Document]] = {}
        for event, ctx in turns:
            if document := documents.document_of_turn(event, ctx):
                by_bank.setdefault(self._bank(ctx.scope), []).append(document)
        calls = self._calls(turns[0].ctx.deadline)
        for bank, together in by_bank.items():
            calls.retain(bank, together)
        return {}

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Retain, replace or delete an entry of one of the agent's stores."""
        apply_write(self._calls(ctx.deadline), self._bank(ctx.scope), event, ctx)

    def on_delegation(self, event: Delegated, ctx: HookContext) -> None:
        """Retain what a sub-agent did."""
        if document := documents.document_of_delegation(event, ctx):
            self._retain(document, ctx)

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Delete what came from these events of this lineage, except entries of the stores.

        Raises:
            Transient: one of the events is still in Hindsight's queue.
        """
        calls, bank = self._calls(ctx.deadline), self._bank(ctx.scope)
        if self._options.queued and calls.queued_documents(bank) & set(event_ids):
            raise Transient("Hindsight's queue still holds what is to be taken back")
        retract_events(calls, bank, event_ids, ctx)

    def _retain(self, document: Document, ctx: HookContext) -> None:
        bank = self._bank(ctx.scope)
        operation = documents.operation_id(bank, document) if self._options.queued else ""
        self._calls(ctx.deadline).retain(bank, [document], operation)

    # -- erasure and export -------------------------------------------------------------------

    def forget(self, scope: RecallScope) -> Residue:
        """Delete the banks of a scope."""
        erased = 0
        for bank in self._banks(scope):
            calls = self._calls(_ERASE_SECONDS)
            if single_owner(scope) or next(calls.document_names(bank, tags_of(scope)), None):
                erased += calls.delete_bank(bank)
        traced = self._calls(_ERASE_SECONDS).features().llm_trace
        return Residue(erased, (_TRACES,) if traced else ())

    def export(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield the texts that were retained, without what Hindsight derived from them."""
        for bank in sorted(self._banks(scope)):
            for name in self._calls(_ERASE_SECONDS).document_names(bank, tags_of(scope)):
                if document := self._calls(_ERASE_SECONDS).get_document(bank, name):
                    yield documents.to_stored_memory(document)

    # -- tools and recall ---------------------------------------------------------------------

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Return what Hindsight recalls, or what its model answers, as the options say."""
        question = sendable(query)[:_MAX_QUERY_CHARS]
        if not _WORD.search(question):
            return ()
        calls = self._calls(ctx.deadline)
        tokens = max(1, ctx.budget // _CHARS_PER_TOKEN)
        banks = self._banks(ctx.scope)[:_MAX_BANKS]
        if self._options.prefetch == "reflect":
            reflected = (self._reflect(calls, bank, question, ctx.scope, tokens) for bank in banks)
            return [Recollection(text, source="reflection") for text in reflected if text]
        recollections = [
            documents.to_recollection(result)
            for bank in banks
            for result in self._recall(calls, bank, question, ctx.scope, tokens)
        ]
        return (
            recollections
            if len(banks) == 1
            else sorted(recollections, key=lambda recollection: -recollection.score)
        )

    def run_tool(self, call: tools.HindsightCall, ctx: HookContext) -> Mapping[str, Any]:
        calls, scope = self._calls(ctx.deadline), RecallScope.own(ctx.scope)
        bank = self._bank(ctx.scope)
        match call:
            case tools.Recall():
                results = self._recall(calls, bank, sendable(call.query), scope)
                return {
                    "ok": True,
                    "results": [documents.to_tool_result(result) for result in results],
                }
            case tools.Reflect():
                return {"ok": True, "text": self._reflect(calls, bank, call.query, scope)}
            case tools.Retain():
                calls.retain(bank, [documents.document_of_note(call.content, call.context, ctx)])
                return {"ok": True}

    def _recall(
        self, calls: "Calls", bank: str, query: str, scope: RecallScope, tokens: int | None = None
    ) -> list["RecallResult"]:
        most = self._options.recall_tokens
        budget = self._options.recall_budget
        return calls.recall(bank, query, tags_of(scope), budget, min(most, tokens or most))

    def _reflect(
        self, calls: "Calls", bank: str, query: str, scope: RecallScope, tokens: int | None = None
    ) -> str:
        most = self._options.reflect_tokens
        budget = self._options.reflect_budget
        return calls.reflect(bank, query, tags_of(scope), budget, min(most, tokens or most))

    # -- banks and requests -----------------------------------------------------------------------

    def _bank(self, scope: Scope) -> str:
        return bank_of(self._options.prefix, scope.agent, scope.user, scope.workspace)

    def _banks(self, scope: RecallScope) -> list[str]:
        """Return the bank of a single owner, or else all of our banks, to be filtered by tags."""
        if owner := single_owner(scope):
            return [bank_of(self._options.prefix, owner.agent, owner.user, owner.workspace)]
        return self._calls(_ERASE_SECONDS).bank_names(f"{self._options.prefix}__")

    def _calls(self, deadline: float) -> "Calls":
        return self.client.within(deadline)


_EVENT = re.compile(r"[0-9a-f]{32}")


def retract_events(calls: "Calls", bank: str, event_ids: Sequence[str], ctx: HookContext) -> None:
    """Delete what came from events, if it belongs to the scope and lineage of `ctx`."""
    for event_id in filter(_EVENT.fullmatch, event_ids):
        document = calls.get_document(bank, event_id)
        if document and _may_retract(document, ctx):
            calls.delete_document(bank, event_id)


def _may_retract(document: StoredDocument, ctx: HookContext) -> bool:
    """Return whether a document is of this scope and lineage, and no entry of a store."""
    return (
        document.kind not in STORES
        and set(tags_of(RecallScope.own(ctx.scope))) <= set(document.tags)
        and document.metadata.get("root") == sendable(ctx.session.root)
    )


_MAX_SEARCH_CHARS = 200
"""The most characters of an old text that are searched for: they are part of the request's URL."""


def apply_write(calls: "Calls", bank: str, event: MemoryWritten, ctx: HookContext) -> None:
    """Apply a write: store the new entry, then delete the one that contains ``old_text``.

    In this order, a crash between the two steps never loses both entries.
    """
    document = None if event.action == "remove" else document_of_write(event, ctx)
    if document:
        calls.retain(bank, [document])
    wanted = old_text(event)
    if wanted:
        others = (
            entry for entry in _entries(calls, bank, event, ctx, wanted) if entry.id != ctx.event_id
        )
        for one in replaced_entries(event, others, lambda kept: kept.text):
            calls.delete_document(bank, one.id)


def _entries(
    calls: "Calls", bank: str, event: MemoryWritten, ctx: HookContext, wanted: str
) -> Iterator[StoredDocument]:
    """Yield the entries of a store that contain a text, and perhaps others."""
    tags = (*tags_of(RecallScope.own(ctx.scope)), store_tag(event.store))
    for name in list(calls.document_names(bank, tags, wanted[:_MAX_SEARCH_CHARS])):
        if document := calls.get_document(bank, name):
            yield document
