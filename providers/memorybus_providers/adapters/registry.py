"""The nine-member contract behind the bus: ``kind = "registry:module:Class"``.

`Class` (or any callable) is called without arguments and returns a provider of the contract in
`registry_members`, or several. Each agent, person and workspace has instances of its own, since the
contract ties an instance to a ``session_key``: it is made of these, not of the session, so that a
later session recalls what an earlier one remembered. A single provider gets all of the options
as its configuration, one of several those under its name.

Better than several in one instance of the bus are several instances: each has its own lanes then,
and one that fails holds up no other.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, get_args

from memorybus import private
from memorybus.errors import ConfigError
from memorybus.events import ContextCompressing, MemoryWritten, Message, StoreName, TurnCompleted

from memorybus_providers import registry
from memorybus_providers.adapters.hosted import Caller, classified, options, side_by_side
from memorybus_providers.adapters.owners import Owner, Owners, owner_of
from memorybus_providers.adapters.passages import passages
from memorybus_providers.adapters.registry_members import (
    COMPRESS_DEADLINE,
    SHUTDOWN_DEADLINE,
    RegisteredProvider,
    Registry,
)
from memorybus_providers.base import (
    Capabilities,
    HookContext,
    MemoryProvider,
    RecallContext,
    Recollection,
)
from memorybus_providers.builtin.places import folder_of
from memorybus_providers.errors import Permanent

INSTANCES = 64
"""Owners that are served at once; the one unused longest is shut down (G10)."""

_EVICTION = 2.0
"""Seconds that a call waits for the shutdown of instances which make room for its own."""

_log = logging.getLogger("memorybus")

_STORES = get_args(StoreName)

Factory = Callable[[], RegisteredProvider | Iterable[RegisteredProvider]]


class RegistryProvider(MemoryProvider):
    """Providers of the nine-member contract behind the bus. Blind: it takes no event id (G4).

    Their state may be files, so they stay on one host, and writes come from one thread.
    """

    placement = "local"
    capabilities = Capabilities(
        recall=True, handles=frozenset({TurnCompleted, MemoryWritten, ContextCompressing})
    )
    factory: ClassVar[Factory]
    _registries: OrderedDict[Owner, Registry] | None = None

    def open(self) -> None:
        """Make what the instances share; they are made when their owner first comes.

        Raises:
            ConfigError: what the factory makes is no provider of the contract, or two have one
                name.
        """
        private.directory(self.config.home)
        _check(self.kind, self._made())
        self._owners = Owners(self.config.home)
        self._caller = Caller(self.config.name)
        self._options = options(self.config)
        self._registries = OrderedDict()

    def shutdown(self) -> None:
        """Shut all instances down."""
        open_ones, self._registries = self._registries, None
        if open_ones is None:
            return
        ends = {session_key(owner): one.shutdown_all for owner, one in open_ones.items()}
        side_by_side(ends, SHUTDOWN_DEADLINE, self.config.clock)
        self._caller.close()

    def backup_paths(self) -> Sequence[Path]:
        """Return the home: what else the hosted providers keep, they alone know."""
        return [self.config.home]

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Tell of a completed turn."""
        self._tell(ctx, "on_turn_complete", event.user, event.assistant)

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Tell of a write; what an action has no use for is None."""
        content = None if event.action == "remove" else event.content
        old_text = None if event.action == "add" else event.old_text
        self._tell(ctx, "on_memory_write", event.action, event.store, content, old_text)

    def on_pre_compress(self, event: ContextCompressing, ctx: HookContext) -> str:
        """Tell of what is about to be compressed; the contract has no text to give back."""
        messages = [plain(message) for message in event.messages]
        self._tell(ctx, "on_compress", messages, event.compression_count)
        return ""

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Return the passages of what the providers add to a turn, in their order."""
        asked = [{"role": "user", "content": query}]
        answers = [
            answer
            for owner in self._owners.asked(ctx.scope)
            for answer in self._registry(owner).enrich_turn(query, asked, ctx.deadline)
        ]
        several = len({label for label, _ in answers}) > 1
        return [
            Recollection(part, speaker=label if several else "")
            for label, text in dict.fromkeys(answers)
            for part in passages(text)
        ]

    def _tell(self, ctx: HookContext, method: str, *args: Any) -> None:
        owner = owner_of(ctx.scope)
        self._owners.note(owner)
        deadline = min(ctx.deadline, COMPRESS_DEADLINE)
        self._registry(owner).tell(ctx.event_id, method, *args, deadline=deadline)

    def _registry(self, owner: Owner) -> Registry:
        """Return an owner's instances, made if they are not there."""
        kept = self._registries
        if kept is None:
            raise Permanent(f"{self.kind} is not open")
        if owner not in kept:
            kept[owner] = self._started(owner)
        kept.move_to_end(owner)
        if len(kept) > INSTANCES:
            kept.popitem(last=False)[1].shutdown_all(_EVICTION)
        return kept[owner]

    def _started(self, owner: Owner) -> Registry:
        made = self._made()
        found = Registry(self._caller, self.config.clock)
        for provider in made:
            found.register(provider)
        config_of = self._config_of_several if len(made) > 1 else self._config_of_one
        found.initialize_all(session_key(owner), config_of)
        self._tell_agents_part(found)
        return found

    def _tell_agents_part(self, found: Registry) -> None:
        """Log what the contract leaves to the agent's process, where no worker can do it."""
        suppressed = [store for store in _STORES if found.suppresses_local_writes_for(store)]
        if found.tool_names:
            _log.info("%s: the agent registers its tools %s", self.kind, sorted(found.tool_names))
        if suppressed:
            _log.info("%s asks the agent not to write its own %s", self.kind, suppressed)

    def _made(self) -> list[RegisteredProvider]:
        try:
            made = type(self).factory()
            return list(made) if isinstance(made, Iterable) else [made]
        except Exception as error:
            raise classified(error, self.kind) from error

    def _config_of_one(self, name: str) -> dict[str, Any]:
        return dict(self._options)

    def _config_of_several(self, name: str) -> dict[str, Any]:
        config = self._options.get(name, {})
        return dict(config) if isinstance(config, Mapping) else {}


def _check(kind: str, made: Sequence[RegisteredProvider]) -> None:
    for one in made:
        if not isinstance(one, RegisteredProvider):
            raise ConfigError(
                f"{kind} made a {type(one).__name__}, which lacks some of the contract"
            )
    trial = Registry(Caller(kind))
    try:
        for one in made:
            trial.register(one)
    except ValueError as error:
        raise ConfigError(f"{kind}: {error}") from error


def host(target: str) -> type[MemoryProvider]:
    """Return the provider class of ``registry:<target>``; `target` reads ``module:Class``.

    Raises:
        MissingProvider, ConfigError: see `registry.named`.
    """
    factory = registry.named(target)
    fields = {"kind": f"registry:{target}", "factory": staticmethod(factory)}
    return type("HostedRegistryProvider", (RegistryProvider,), fields)


def session_key(owner: Owner) -> str:
    """Return the key of an owner: safe in a file name, and no two share one."""
    parts = (owner.agent, owner.user, *([owner.workspace] if owner.workspace else []))
    return "@".join(map(folder_of, parts))


def plain(message: Message) -> dict[str, str]:
    """Return a message as the contract has it: role and text, no parts."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(part for part in parts if isinstance(part, str))
    return {
        "role": str(message.get("role", "")),
        "content": content if isinstance(content, str) else "",
    }
