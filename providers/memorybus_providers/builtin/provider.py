"""The hooks that memorybus calls, with MEMORY.md and USER.md as the memory."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, ClassVar

from memorybus.events import MemoryWritten, Scope, StoreName
from memorybus.ids import text_digest
from msgspec import Meta

from memorybus_providers.base import (
    Capabilities,
    Fence,
    HookContext,
    MemoryOwner,
    Placement,
    Progress,
    ProviderConfig,
    RecallContext,
    RecallScope,
    Recollection,
    Residue,
    StoredMemory,
    Transaction,
    TransactionalProvider,
    Why,
)
from memorybus_providers.builtin.entries import (
    EntryWrite,
    WriteOutcome,
    matched_words,
    rank,
    render_block,
)
from memorybus_providers.builtin.files import (
    MemoryFile,
    encodable,
    file_of,
    readable,
    readable_files,
)
from memorybus_providers.builtin.origins import EntryOrigin
from memorybus_providers.builtin.store import BuiltinStore, belongs_to
from memorybus_providers.digests import key_of, paired
from memorybus_providers.options import Options, option_rows, read_options


class BuiltinOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of an instance in ``memorybus.toml``; the limits are characters, as in Hermes."""

    memory_limit: Annotated[
        int,
        Meta(
            description="Characters of MEMORY.md shown in a system prompt; the newest entries stay."
        ),
    ] = 2_200
    user_limit: Annotated[
        int,
        Meta(
            description="Characters of USER.md shown in a system prompt; the newest entries stay."
        ),
    ] = 1_375


class BuiltinProvider(TransactionalProvider):
    """Keeps one MEMORY.md for each agent profile, and one USER.md for each person."""

    kind: ClassVar[str] = "builtin"
    placement: ClassVar[Placement] = "local"
    capabilities: ClassVar[Capabilities] = Capabilities(
        forgets=True, exports=True, handles=frozenset({MemoryWritten})
    )
    tunable: ClassVar[frozenset[str]] = frozenset({"memory_limit", "user_limit"})
    mirrors: ClassVar[bool] = True

    def __init__(self, config: ProviderConfig) -> None:
        """Check the options.

        Raises:
            ConfigError: an option is unknown or of the wrong type.
        """
        super().__init__(config)
        self._options = read_options(config, BuiltinOptions)
        self._store = BuiltinStore(config.home, config.crash)
        if config.kept_elsewhere:
            stores = " and ".join(sorted(config.kept_elsewhere))
            self.note = f"another provider keeps {stores} alone: such writes are not mirrored"

    # -- life ---------------------------------------------------------------------------------

    def open(self) -> None:
        """Open the database and repair what a crash left between commit and file."""
        self._store.open()

    def shutdown(self) -> None:
        """Close the database."""
        self._store.close()

    def backup_paths(self) -> Sequence[Path]:
        """Return the home: database and files belong together."""
        return (self.config.home,)

    def digest(self, after: str = "") -> Iterator[tuple[str, str]]:
        """Return a pair for each file: ``memory/<agent>`` and ``user/<person>``.

        It covers the entries in their order, and the session and time of each. What a person wrote
        into a file with an editor comes from no event, so that state differs from its rebuild (G8).
        """
        files = readable_files(self.config.home, None, None)
        return paired(
            ((key_of(place.store, place.folder), self._rows(place)) for place in files), after
        )

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]]:
        """Describe the options."""
        return option_rows(BuiltinOptions)

    # -- writing ------------------------------------------------------------------------------

    def progress(self, lane: str) -> Progress | None:
        """Return the lane's committed progress."""
        return self._store.progress(lane)

    def transaction(self, fence: Fence) -> AbstractContextManager[Transaction]:
        """Open a transaction; at its end each changed file is written once."""
        return self._store.transaction(fence)

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Collect the write; it is applied to what the file contains when the batch is committed.

        A write to a store that another provider keeps alone is not mirrored.
        """
        if event.store in self.config.kept_elsewhere:
            return
        write = EntryWrite(
            action=event.action,
            content=encodable(event.content),
            old_text=encodable(event.old_text),
            event_id=ctx.event_id,
            session=encodable(ctx.session.id),
            at=ctx.at,
            scope=_encodable(ctx.scope),
        )
        self._store.write(file_of(event.store, ctx.scope), write)

    def outcomes(self) -> Mapping[WriteOutcome, int]:
        """Return how many writes had each outcome (see `entries`)."""
        return self._store.outcomes()

    # -- what is kept of somebody -------------------------------------------------------------

    def forget(self, scope: RecallScope) -> Residue:
        """Erase a scope's files, and what its sessions wrote into the files of others.

        Raises:
            Transient: another process has locked the database.
            Unavailable: a file or the database cannot be written.
        """
        return self._store.erase(scope)

    def export(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield the entries that `forget` would erase, file by file."""
        for place in readable_files(self.config.home, scope.agent, scope.user):
            for text, origin in self._entries(place):
                if belongs_to(place, origin, scope):
                    yield _stored_memory(place, text, origin)

    def owners(self, after: tuple[str, str, str] | None = None) -> Iterator[MemoryOwner]:
        """Yield the owners whose sessions wrote entries; entries from an editor have no owner."""
        return self._store.owners(after or ("", "", ""))

    # -- recall -------------------------------------------------------------------------------

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Return the entries that share a word with the query, best first.

        It reads without a lock, and sees writes that are committed but have not reached their file.
        The workspace does not matter, since neither store is split by it.
        """
        found = [
            pair
            for place in readable_files(self.config.home, ctx.scope.agent, ctx.scope.user)
            for pair in self._entries(place)
        ]
        return [
            _recollection(*found[i], score, query if ctx.explain else None)
            for score, i in rank([text for text, _ in found], query)
        ]

    def system_prompt_block(self, scope: RecallScope) -> str:
        """Return the stores of this agent and this person, each as a list.

        A scope without an agent or a person has no block for it.
        """
        options = self._options
        shown: tuple[tuple[StoreName, str, int], ...] = (
            ("memory", scope.agent or "", options.memory_limit),
            ("user", scope.user or "", options.user_limit),
        )
        blocks = (self._block(store, owner, limit) for store, owner, limit in shown if owner)
        return "\n\n".join(text for text in blocks if text)

    def _rows(self, place: MemoryFile) -> Iterator[tuple[str, str, int]]:
        return ((text, origin.session, origin.at) for text, origin in self._entries(place))

    def _entries(self, place: MemoryFile) -> Iterator[tuple[str, EntryOrigin]]:
        origins = self._store.origins(place)
        for entry in self._store.entries(place):
            yield readable(entry), origins.get(text_digest(entry), EntryOrigin())

    def _block(self, store: StoreName, owner: str, limit: int) -> str:
        place = file_of(store, Scope(agent=owner, user=owner))
        return render_block(store, tuple(entry for entry, _ in self._entries(place)), limit)


def _encodable(scope: Scope) -> Scope:
    """Return a scope whose names can be stored, whatever characters they have."""
    agent, user, workspace = map(encodable, (scope.agent, scope.user, scope.workspace))
    return Scope(agent=agent, user=user, workspace=workspace)


def _stored_memory(place: MemoryFile, text: str, origin: EntryOrigin) -> StoredMemory:
    """Return an entry for an export; if its writer is not known, it names the file's owner."""
    owner = {"memory": "agent", "user": "user"}[place.store]
    agent, user = (
        name if name is not None else place.folder if owner == part else ""
        for part, name in (("agent", origin.agent), ("user", origin.user))
    )
    return StoredMemory(
        *(text, agent, user, origin.workspace or "", place.store, origin.session, origin.at),
        event=origin.event,
    )


def _recollection(text: str, origin: EntryOrigin, score: float, query: str | None) -> Recollection:
    """Return an entry as a recollection, with an explanation if `query` is given."""
    why = None if query is None else Why(matched_words(text, query), parts={"words": score})
    return Recollection(text, origin.session, origin.at, score=score, event=origin.event, why=why)
