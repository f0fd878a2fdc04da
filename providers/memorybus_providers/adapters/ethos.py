"""The two-method contract: ``prefetch(ctx) -> context | None`` and ``sync(ctx, updates)``.

It is the contract of the Ethos agent framework, in Python: names in snake case, methods plain or
coroutines. The sources of this page are ``packages/types/src/memory.ts`` of ``MiteshSharma/ethos``
at 78b1172 (later ``ethosagent/ethos``), the version of that file which adds ``memoryScope`` and
``query`` to the context, and ``docs/content/building/how-to/add-a-memory-provider.md`` of May 2026,
which writes a provider for Postgres. Its terms:

- there are two stores. The key of ``memory`` is ``sessionKey``, together with ``personalityId`` if
  ``memoryScope`` is ``per-personality`` (the other value is ``global``). The key of ``user`` is
  ``userId``, or ``sessionKey`` without one, for every personality;
- ``sessionKey`` is not a session: it names a chat that outlives sessions (``cli:PROJECT``, a
  channel, a person);
- of the updates, ``add`` appends ``content``, ``replace`` replaces the *whole* store by it, and
  ``remove`` removes the lines that contain ``substring_match``;
- ``query`` is the present message, for providers that search by meaning;
- ``prefetch`` returns None if both stores are empty; else ``content``, its ``source`` (markdown,
  vector, honcho, custom), and whether it was cut (``truncated``);
- an empty list of updates writes nothing.

``kind = "ethos:module:Class"`` adapts such a provider to the bus. `Class` (or any callable) is
called once, with the instance's options as keywords; each context names the owner of the memory.
Each agent of the bus is a personality here, with its own notes. Ids in a context are safe as
directory names.

``ethosagent/ethos`` at 10027db has another contract with these names: it has five methods (also
``read``, ``search`` and ``list``), ``sync(updates, ctx)`` has the arguments in the other order, and
a context has a ``scopeId``. A provider of that form is refused before it gets any event.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Protocol

import msgspec
from memorybus import private
from memorybus.errors import ConfigError
from memorybus.events import MemoryWritten, SessionRef, StoreName

from memorybus_providers import registry
from memorybus_providers.adapters.conversations import split_passages
from memorybus_providers.adapters.hosted import Caller, options
from memorybus_providers.base import (
    Capabilities,
    HookContext,
    MemoryProvider,
    RecallContext,
    Recollection,
)
from memorybus_providers.builtin.entries import rank
from memorybus_providers.errors import Permanent
from memorybus_providers.owners import Owner, Owners, folder_of, owner_of, session_key

_SEARCHING_SOURCES: Final = frozenset({"vector", "honcho"})
"""Sources that search by the query themselves, so that answers need not share its words."""

_FURTHER_METHODS: Final = ("read", "search", "list")
"""The methods of the contract with five methods, in addition to `prefetch` and `sync`."""


class LoadContext(msgspec.Struct, frozen=True, kw_only=True):
    """The owner of the memory, and the conversation.

    Attributes:
        session_key: the conversation between the agent and the person in the workspace, in every
            session and on every platform.
        memory_scope: always ``per-personality``, since each agent has its own notes.
    """

    session_id: str  # the session; "" if none is known (an operator's recall)
    session_key: str
    user_id: str | None = None  # the person
    platform: str = ""  # where the conversation happens; "" in a recall
    working_dir: str | None = None  # the workspace, if the agent has one
    personality_id: str | None = None  # the agent's identity
    memory_scope: Literal["global", "per-personality"] = "per-personality"
    query: str | None = None  # the question; None if there is none


class MemoryUpdate(msgspec.Struct, frozen=True):
    """One change of one store; ``remove`` has no content but a `substring_match`."""

    store: StoreName
    action: Literal["add", "replace", "remove"]
    content: str = ""
    substring_match: str | None = None


class MemoryContext(msgspec.Struct, frozen=True):
    """What a prefetch returns. Any object or mapping with a text ``content`` is accepted, too."""

    content: str  # the text that is remembered
    source: str = "custom"  # where it comes from
    truncated: bool = False  # whether the text was cut


class TwoMethods(Protocol):
    """The contract; either method may be a coroutine."""

    def prefetch(self, ctx: LoadContext) -> Any:
        """Return what is remembered for a context, or None if nothing is."""
        ...

    def sync(self, ctx: LoadContext, updates: Sequence[MemoryUpdate]) -> Any:
        """Apply updates in their order."""
        ...


class EthosProvider(MemoryProvider):
    """Adapts a provider of the two-method contract to the bus.

    Its delivery is ``blind``, since the contract has no event ids (G4). Its state may be files, so
    it stays on one host, and writes come from one thread.
    """

    placement = "local"
    note = "two-method contract: it gets memory writes, and no turns"
    capabilities = Capabilities(recall=True, handles=frozenset({MemoryWritten}))
    factory: ClassVar[Callable[..., TwoMethods]]
    _hosted: TwoMethods | None = None

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]] | None:
        """Return the keywords of the hosted class; None if it takes any, or cannot be inspected."""
        try:
            found = inspect.signature(cls.factory).parameters.values()
        except (TypeError, ValueError):
            return None
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in found):
            return None
        return [
            {
                "key": parameter.name,
                "description": f"a keyword of {cls.kind}",
                "required": parameter.default is parameter.empty,
            }
            for parameter in found
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        ]

    def open(self) -> None:
        """Make the hosted provider.

        Raises:
            ConfigError: the object that was made is not a provider of this contract.
        """
        private.directory(self.config.home)
        self._owners = Owners(self.config.home)
        self._caller = Caller(self.config.name)
        given = options(self.config)
        made = self._caller.call(self.kind, lambda: type(self).factory(**given), deadline=5)
        _check(self.kind, made)
        self._hosted = made

    def shutdown(self) -> None:
        """Release the hosted provider; the contract has no method for it."""
        if self._hosted is not None:
            self._hosted = None
            self._caller.close()

    def backup_paths(self) -> Sequence[Path]:
        """Return the home; other places of the hosted provider are not known."""
        return [self.config.home]

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Call ``sync`` with the updates for a write, unless there are none."""
        updates = updates_of(event)
        if not updates:
            return
        owner = owner_of(ctx.scope)
        context = _context(owner, ctx.session, platform=ctx.scope.platform)
        self._owners.note(owner)
        self._call("sync", context, updates, deadline=ctx.deadline)

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Return the passages of what is remembered that answer a query, best first.

        Answers of a source that searches by the query itself come first, in their own order.
        """
        contexts: dict[str, MemoryContext] = {}
        for owner in self._owners.owners_in(ctx.scope):
            answer = self._fetch(owner, query, ctx)
            for part in split_passages(answer.content):
                contexts.setdefault(part, answer)
        chosen = [part for part, answer in contexts.items() if answer.source in _SEARCHING_SOURCES]
        others = [
            part for part, answer in contexts.items() if answer.source not in _SEARCHING_SOURCES
        ]
        best = [(part, 0.0) for part in chosen]
        best += [(others[at], score) for score, at in rank(others, query)]
        return [_recollection(part, contexts[part], score) for part, score in best]

    def _fetch(self, owner: Owner, query: str, ctx: RecallContext) -> MemoryContext:
        context = _context(owner, ctx.session, query=query)
        return answer_of(self._call("prefetch", context, deadline=ctx.deadline))

    def _call(self, method: str, *args: Any, deadline: float) -> Any:
        bound = getattr(self._hosted, method)
        return self._caller.call(f"{self.kind} {method}", bound, *args, deadline=deadline)


def host(target: str) -> type[MemoryProvider]:
    """Return the provider class of ``ethos:<target>``; `target` has the form ``module:Class``.

    Raises:
        MissingProvider: see `registry.import_named`.
        ConfigError: likewise; or the class is of another contract.
    """
    factory = registry.import_named(target)
    kind = f"ethos:{target}"
    if isinstance(factory, type):
        _check(kind, factory)
    fields = {"kind": kind, "factory": staticmethod(factory)}
    return type("HostedEthosProvider", (EthosProvider,), fields)


def _check(kind: str, made: Any) -> None:
    """Check that a provider, or its class, is of the two-method contract.

    Raises:
        ConfigError: it has the form with five methods, or lacks one of the two methods.
    """
    missing = [name for name in ("prefetch", "sync") if not callable(getattr(made, name, None))]
    if missing:
        raise ConfigError(f"{kind} has no {' and no '.join(missing)}: it is no memory provider")
    if _has_five_methods(made):
        raise ConfigError(
            f"{kind} is of the contract with five methods and sync(updates, ctx), which is not "
            f"supported; give it sync(ctx, updates) and prefetch(ctx) -> content, or write it as "
            f"a provider of memorybus (docs/providers.md)"
        )


def _has_five_methods(made: Any) -> bool:
    """Return whether `sync` takes the updates first; if its parameters' names do not show this, say
    whether all further methods exist.
    """
    try:
        names = [name for name in inspect.signature(made.sync).parameters if name != "self"]
    except (TypeError, ValueError):
        names = []
    if names[:1] == ["updates"]:
        return True
    if names[:1] in (["ctx"], ["context"]):
        return False
    return all(callable(getattr(made, name, None)) for name in _FURTHER_METHODS)


def updates_of(event: MemoryWritten) -> list[MemoryUpdate]:
    """Return the updates for a write of the bus, in their order.

    A ``replace`` of the bus replaces one entry, but that of the contract replaces the whole store.
    So it becomes a ``remove`` and an ``add``.
    """
    updates = []
    if event.action != "add" and event.old_text.strip():
        updates.append(MemoryUpdate(event.store, "remove", substring_match=event.old_text))
    if event.action != "remove" and event.content.strip():
        updates.append(MemoryUpdate(event.store, "add", event.content))
    return updates


def answer_of(context: Any) -> MemoryContext:
    """Return what a prefetch returned, with an empty content for None.

    Raises:
        Permanent: it is neither None nor an object with a text ``content``.
    """
    if context is None:
        return MemoryContext("")
    answer = {name: _field(context, name) for name in MemoryContext.__struct_fields__}
    if not isinstance(answer["content"], str):
        raise Permanent(f"prefetch returned {type(context).__name__} without a text `content`")
    source = answer["source"] if isinstance(answer["source"], str) else "custom"
    return MemoryContext(answer["content"], source, answer["truncated"] is True)


def _field(context: Any, name: str) -> Any:
    mapping = isinstance(context, Mapping)
    return context.get(name) if mapping else getattr(context, name, None)


def _recollection(part: str, answer: MemoryContext, score: float) -> Recollection:
    return Recollection(part, score=score, source=answer.source, truncated=answer.truncated)


def _context(
    owner: Owner, session: SessionRef | None, *, platform: str = "", query: str | None = None
) -> LoadContext:
    return LoadContext(
        session_id=session.id if session else "",
        session_key=session_key(owner),
        user_id=folder_of(owner.user),
        platform=platform,
        working_dir=owner.workspace or None,
        personality_id=folder_of(owner.agent),
        query=query,
    )
