"""The provider's hooks. Honcho's client is imported when an instance is opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memorybus.events import (
    Delegated,
    MemoryWritten,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
)

from memorybus_providers.base import (
    HookContext,
    RecallContext,
    RecallScope,
    Recollection,
    Residue,
    StoredMemory,
)
from memorybus_providers.honcho import messages, options, tools
from memorybus_providers.remote.provider import RemoteProvider, service_capabilities
from memorybus_providers.remote.texts import sendable

if TYPE_CHECKING:
    from memorybus_providers.honcho.account import Account

_MAX_METADATA_CHARS = 500  # the most characters of each text in a session's metadata (G10)


class HonchoProvider(RemoteProvider["Account"]):
    """Keeps conversations in Honcho, and recalls from it what they say about a person."""

    kind = "honcho"
    delivery = "lookup"
    capabilities = service_capabilities(
        tools.TOOLS,
        frozenset({SessionStarted, TurnCompleted, MemoryWritten, SessionSwitched, Delegated}),
        retracts=False,
    )
    package = "honcho"
    options_type = options.HonchoOptions
    _options: options.HonchoOptions
    toolset = tools.TOOLS
    tunable = frozenset({"prefix", "results", "context_ttl", "dialectic_per_day"})

    # -- opening ----------------------------------------------------------------------------------

    def connect(self) -> Account:
        """Read the key; the connection is made by the first request."""
        from memorybus_providers.honcho.account import Account

        return Account(self.config, self._options, self.api_key())

    def health(self, deadline: float) -> str:
        """Ask the server, which proves that address and key are right."""
        return self.client.health(deadline)

    # -- write hooks ------------------------------------------------------------------------------

    def initialize(self, event: SessionStarted, ctx: HookContext) -> None:
        """Make the session, and record from which session it came."""
        metadata = {"title": event.title, "parent": event.parent, "reason": event.reason}
        continues = event.parent if event.reason == "compression" else ""
        self._link_session(metadata | {"platform": event.platform}, continues, ctx)

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Store what was said; long texts are split."""
        self.client.store_messages(messages.messages_of_turn(event, ctx), ctx)

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Make or delete conclusions, as the write to a store requires."""
        self.client.apply_store_write(event, ctx)

    def on_delegation(self, event: Delegated, ctx: HookContext) -> None:
        """Store what a sub-agent did, as messages of the agent."""
        self.client.store_messages(messages.messages_of_delegation(event, ctx), ctx)

    def on_session_switch(self, event: SessionSwitched, ctx: HookContext) -> None:
        """Record from which session this one came; mark messages that were retracted."""
        continues = event.parent if event.reason == "compression" else ""
        self._link_session({"parent": event.parent, "reason": event.reason}, continues, ctx)
        if event.retracted:
            self.client.retract_messages(event.retracted, ctx)

    def knows(self, event_id: str, ctx: HookContext) -> bool:
        """Return whether Honcho has all messages of an event."""
        return self.client.knows(event_id, ctx)

    def _link_session(self, metadata: Mapping[str, str], continues: str, ctx: HookContext) -> None:
        """Store metadata of the context's session, unless it would continue itself."""
        known = {
            key: sendable(text)[:_MAX_METADATA_CHARS] for key, text in metadata.items() if text
        }
        if continues != ctx.session.id:
            self.client.link_session(known, ctx, continues=continues)

    # -- tools and recall -------------------------------------------------------------------------

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Return messages and conclusions near a question; without one, the base context."""
        return self.client.recall(query, ctx)

    def system_prompt_block(self, scope: RecallScope) -> str:
        """Return the person's card and representation."""
        return self.client.base_text(scope)

    def run_tool(self, call: tools.HonchoCall, ctx: HookContext) -> Mapping[str, Any]:
        return self.client.run_tool(call, ctx)

    # -- erasure and export -----------------------------------------------------------------------

    def forget(self, scope: RecallScope) -> Residue:
        """Delete the workspaces of a scope."""
        return self.client.forget(scope)

    def export(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield messages, conclusions and cards of a scope."""
        return self.client.export(scope)
