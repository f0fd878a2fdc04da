"""The provider: hooks in, requests out. The client is imported when an instance is opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from memorybus.events import (
    Delegated,
    MemoryWritten,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
)

from memorybus_providers.base import (
    Capabilities,
    HookContext,
    MemoryProvider,
    ProviderConfig,
    RecallContext,
    RecallScope,
    Recollection,
    Residue,
    StoredMemory,
)
from memorybus_providers.errors import MissingProvider
from memorybus_providers.honcho import options, saying, tools
from memorybus_providers.remote import credentials
from memorybus_providers.remote.texts import sendable

if TYPE_CHECKING:
    from memorybus_providers.honcho.account import Account

_CLIENT = "honcho"

_SHOWN = 500
"""Characters of what is noted of a session (G10)."""


class HonchoProvider(MemoryProvider):
    """Keeps conversations in Honcho, and asks it for what they tell of a person."""

    kind = "honcho"
    delivery = "lookup"
    placement = "shared"
    capabilities = Capabilities(
        recall=True,
        tools=True,
        reading_tools=tools.READING,
        concurrent=True,
        forgets=True,
        exports=True,
        handles=frozenset(
            {SessionStarted, TurnCompleted, MemoryWritten, SessionSwitched, Delegated}
        ),
    )
    fresh_options = ("prefix",)
    tunable = frozenset(
        {"prefix", "results", "context_ttl", "dialectic_every", "dialectic_per_day"}
    )

    def __init__(self, config: ProviderConfig) -> None:
        """Read the options.

        Raises:
            ConfigError: an option is wrong.
        """
        super().__init__(config)
        self._options = options.options_of(config)
        self._opened: Account | None = None

    # -- life -------------------------------------------------------------------------------------

    @classmethod
    def is_available(cls, config: ProviderConfig) -> bool:
        """Say whether the client is installed."""
        return find_spec(_CLIENT) is not None

    def open(self) -> None:
        """Read the key; the first request connects.

        Raises:
            MissingProvider: the client is not installed.
            ConfigError: the key is not where the options say.
        """
        key = credentials.api_key(self.config)
        try:
            from memorybus_providers.honcho.account import Account
        except ImportError as error:
            raise MissingProvider(
                f"provider {self.config.name}: Honcho's client cannot be imported: {error}. "
                "Install it with: pip install 'memorybus[honcho]'"
            ) from error
        self._opened = Account(self.config, self._options, key)

    def shutdown(self) -> None:
        """Close the connections."""
        if self._opened:
            self._opened.close()
            self._opened = None

    def health(self, deadline: float) -> str:
        """Ask the server, which shows that address and key are right."""
        return self._account.health(deadline)

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]]:
        """Describe the options."""
        return options.SCHEMA

    @property
    def _account(self) -> Account:
        if self._opened is None:
            raise RuntimeError("the provider is not open")
        return self._opened

    # -- write hooks ------------------------------------------------------------------------------

    def initialize(self, event: SessionStarted, ctx: HookContext) -> None:
        """Make the session, and note where it comes from."""
        told = {"title": event.title, "parent": event.parent, "reason": event.reason}
        goes_on = event.parent if event.reason == "compression" else ""
        self._link(told | {"platform": event.platform}, goes_on, ctx)

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Store what was said, in parts where it is long."""
        self._account.say(saying.of_turn(event, ctx), ctx)

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Make or delete conclusions."""
        self._account.note(event, ctx)

    def on_delegation(self, event: Delegated, ctx: HookContext) -> None:
        """Store what a sub-agent did, as the agent's words."""
        self._account.say(saying.of_delegation(event, ctx), ctx)

    def on_session_switch(self, event: SessionSwitched, ctx: HookContext) -> None:
        """Note where the session comes from; mark what was taken back."""
        goes_on = event.parent if event.reason == "compression" else ""
        self._link({"parent": event.parent, "reason": event.reason}, goes_on, ctx)
        if event.retracted:
            self._account.take_back(event.retracted, ctx)

    def knows(self, event_id: str, ctx: HookContext) -> bool:
        """Ask for the messages of an event by their metadata."""
        return self._account.knows(event_id, ctx)

    def _link(self, told: Mapping[str, str], goes_on: str, ctx: HookContext) -> None:
        """Note what is known of the context's session; what came first is kept."""
        known = {key: sendable(text)[:_SHOWN] for key, text in told.items() if text}
        if goes_on != ctx.session.id:
            self._account.link(known, ctx, goes_on=goes_on)

    # -- tools and recall -------------------------------------------------------------------------

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Return what was said and what is held near a question."""
        return self._account.recall(query, ctx)

    def system_prompt_block(self, scope: RecallScope) -> str:
        """Return the person's card and representation."""
        return self._account.prompt(scope)

    def get_tool_schemas(self) -> Sequence[Mapping[str, Any]]:
        """Return the schemas of the six tools."""
        return tools.schemas()

    def handle_tool_call(
        self, tool: str, arguments: Mapping[str, Any], ctx: HookContext
    ) -> Mapping[str, Any]:
        """Run a tool."""
        call = tools.parsed(tool, arguments)
        return {"error": call} if isinstance(call, str) else self._account.call(call, ctx)

    # -- what is kept of somebody -----------------------------------------------------------------

    def forget(self, scope: RecallScope) -> Residue:
        """Delete the workspaces of a scope."""
        return self._account.forget(scope)

    def export(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield messages, conclusions and cards of a scope."""
        return self._account.export(scope)
