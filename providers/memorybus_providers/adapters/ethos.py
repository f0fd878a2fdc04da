"""The two-method contract: ``prefetch(ctx) -> context | None`` and ``sync(ctx, updates)``.

It is that of the Ethos agent framework (``packages/types/src/memory.ts`` of
``MiteshSharma/ethos`` at 78b1172, later ``ethosagent/ethos``), in Python: names in snake case,
methods plain or coroutines. Its terms:

- two stores: ``memory`` is the personality's, ``user`` the person's, whatever the personality;
- updates: ``add`` appends ``content``, ``replace`` puts it in the place of the *whole* store,
  ``remove`` takes away what contains ``substring_match``;
- ``prefetch`` returns None when both stores are empty;
- an empty list of updates writes nothing.

``kind = "ethos:module:Class"`` puts such a provider behind the bus. `Class` (or any callable) is
called with the instance's options as keywords, once: the context says each time whose memory is
meant. An agent of the bus is a personality here. Ids in a context are safe as directory names.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import msgspec
from memorybus import private
from memorybus.events import MemoryWritten, SessionRef, StoreName

from memorybus_providers import registry
from memorybus_providers.adapters.hosted import Caller, options
from memorybus_providers.adapters.owners import Owner, Owners, owner_of
from memorybus_providers.adapters.passages import passages
from memorybus_providers.base import (
    Capabilities,
    HookContext,
    MemoryProvider,
    RecallContext,
    Recollection,
)
from memorybus_providers.builtin.places import folder_of
from memorybus_providers.builtin.ranking import rank
from memorybus_providers.errors import Permanent


class LoadContext(msgspec.Struct, frozen=True, kw_only=True):
    """Whose memory is meant, and in which conversation.

    Attributes:
        session_id: the session; "" where nobody's is known (an operator's recall).
        session_key: the first session of its lineage: what stays the same through compressions.
        user_id: the person.
        platform: where the conversation happens; "" in a recall.
        working_dir: the workspace, if the agent has one.
        personality_id: the agent's identity.
    """

    session_id: str
    session_key: str
    user_id: str | None = None
    platform: str = ""
    working_dir: str | None = None
    personality_id: str | None = None


class MemoryUpdate(msgspec.Struct, frozen=True):
    """One change of one store; ``remove`` has no content but a `substring_match`."""

    store: StoreName
    action: Literal["add", "replace", "remove"]
    content: str = ""
    substring_match: str | None = None


class MemoryContext(msgspec.Struct, frozen=True):
    """What a prefetch returns. Any object or mapping with a text ``content`` will do as well."""

    content: str
    source: str = "custom"
    truncated: bool = False


class TwoMethods(Protocol):
    """The contract; either method may be a coroutine."""

    def prefetch(self, ctx: LoadContext) -> Any:
        """Return what is remembered for a context, or None if that is nothing."""
        ...

    def sync(self, ctx: LoadContext, updates: Sequence[MemoryUpdate]) -> Any:
        """Apply updates in their order."""
        ...


class EthosProvider(MemoryProvider):
    """A provider of the two-method contract behind the bus. Blind: it takes no event id (G4).

    Its state may be files, so it stays on one host, and writes come from one thread.
    """

    placement = "local"
    note = "two-method contract: it gets memory writes, and no turns"
    capabilities = Capabilities(recall=True, handles=frozenset({MemoryWritten}))
    factory: ClassVar[Callable[..., TwoMethods]]
    _hosted: TwoMethods | None = None

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]] | None:
        """Return the keywords of the hosted class; None if it takes any, or does not say."""
        try:
            found = inspect.signature(cls.factory).parameters.values()
        except (TypeError, ValueError):
            return None
        if any(one.kind is one.VAR_KEYWORD for one in found):
            return None
        return [
            {
                "key": one.name,
                "description": f"a keyword of {cls.kind}",
                "required": one.default is one.empty,
            }
            for one in found
            if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        ]

    def open(self) -> None:
        """Make the hosted provider."""
        private.directory(self.config.home)
        self._owners = Owners(self.config.home)
        self._caller = Caller(self.config.name)
        given = options(self.config)
        self._hosted = self._caller.call(self.kind, lambda: type(self).factory(**given), deadline=5)

    def shutdown(self) -> None:
        """Let go of the hosted provider; the contract knows no farewell."""
        if self._hosted is not None:
            self._hosted = None
            self._caller.close()

    def backup_paths(self) -> Sequence[Path]:
        """Return the home: what else the hosted provider keeps, it alone knows."""
        return [self.config.home]

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Sync the updates that a write stands for; none, none."""
        updates = updates_of(event)
        if not updates:
            return
        owner = owner_of(ctx.scope)
        context = _context(owner, ctx.session, ctx.scope.platform)
        self._owners.note(owner)
        self._call("sync", context, updates, deadline=ctx.deadline)

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Return the parts of what is remembered that answer a query, best first."""
        found = [
            part
            for owner in self._owners.asked(ctx.scope)
            for part in passages(self._remembered(owner, ctx))
        ]
        parts = list(dict.fromkeys(found))
        return [Recollection(parts[at], score=score) for score, at in rank(parts, query)]

    def _remembered(self, owner: Owner, ctx: RecallContext) -> str:
        context = _context(owner, ctx.session, "")
        return content_of(self._call("prefetch", context, deadline=ctx.deadline))

    def _call(self, method: str, *args: Any, deadline: float) -> Any:
        bound = getattr(self._hosted, method)
        return self._caller.call(f"{self.kind} {method}", bound, *args, deadline=deadline)


def host(target: str) -> type[MemoryProvider]:
    """Return the provider class of ``ethos:<target>``; `target` reads ``module:Class``.

    Raises:
        MissingProvider, ConfigError: see `registry.named`.
    """
    factory = registry.named(target)
    fields = {"kind": f"ethos:{target}", "factory": staticmethod(factory)}
    return type("HostedEthosProvider", (EthosProvider,), fields)


def updates_of(event: MemoryWritten) -> list[MemoryUpdate]:
    """Return the updates that a write of the bus stands for, in their order.

    A ``replace`` of the bus means one entry, that of the contract the whole store. So it becomes
    a removal and an addition.
    """
    updates = []
    if event.action != "add" and event.old_text.strip():
        updates.append(MemoryUpdate(event.store, "remove", substring_match=event.old_text))
    if event.action != "remove" and event.content.strip():
        updates.append(MemoryUpdate(event.store, "add", event.content))
    return updates


def content_of(context: Any) -> str:
    """Return the text of what a prefetch returned.

    Raises:
        Permanent: it is neither None nor anything with a text ``content``.
    """
    if context is None:
        return ""
    mapping = isinstance(context, Mapping)
    content = context.get("content") if mapping else getattr(context, "content", None)
    if not isinstance(content, str):
        raise Permanent(f"prefetch returned {type(context).__name__} without a text `content`")
    return content


def _context(owner: Owner, session: SessionRef | None, platform: str) -> LoadContext:
    return LoadContext(
        session_id=session.id if session else "",
        session_key=session.root if session else "",
        user_id=folder_of(owner.user),
        platform=platform,
        working_dir=owner.workspace or None,
        personality_id=folder_of(owner.agent),
    )
