"""The holographic provider: hooks in, recollections out; the parts do the work."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from memorybus.errors import MissingProvider, Transient, Unavailable
from memorybus.events import (
    ContextCompressing,
    Delegated,
    MemoryWritten,
    Message,
    TurnCompleted,
)

from memorybus_providers import ledger
from memorybus_providers.base import (
    Capabilities,
    Fence,
    HookContext,
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
from memorybus_providers.embedding.options import SCHEMA, MeaningOptions, options_of
from memorybus_providers.holographic import digest, erasure
from memorybus_providers.holographic.finding.essentials import essentials
from memorybus_providers.holographic.finding.recall import within
from memorybus_providers.holographic.store import HolographicStore
from memorybus_providers.holographic.tools import arguments as tool_arguments
from memorybus_providers.holographic.tools import calls
from memorybus_providers.holographic.writing.entries import Note
from memorybus_providers.holographic.writing.utterances import Utterance
from memorybus_providers.ranking import reasons
from memorybus_providers.ranking.cutoff import worth
from memorybus_providers.ranking.ranking import Scored

if TYPE_CHECKING:  # numpy is imported by who has an embedder
    from memorybus_providers.holographic.meaning.meaning import Meaning

FILE_NAME = "holographic.db"

_SHOWN = 1_000
"""Characters of facts in a system prompt: `builtin` and the prompt itself have more to say."""

STORE_KINDS: Final[Mapping[str, str]] = MappingProxyType({"memory": "memory", "user": "user-store"})


class HolographicProvider(TransactionalProvider):
    """Remembers what was said and kept, in one SQLite file, and finds it by words.

    Delivery is ``transactional``: facts, ledger and checkpoint commit together, so an event's
    effect happens once (G4) and only for the current owner of a lane (G5). Any number of
    instances may have the file open; recall reads a snapshot and never waits for a writer.
    ``retrieval_count`` counts what tools listed, not prefetches: those must not write. It is a
    hint: a count that would have to wait for a long transaction is left out.
    """

    kind: ClassVar[str] = "holographic"
    placement: ClassVar[Placement] = "local"
    capabilities: ClassVar[Capabilities] = Capabilities(
        recall=True,
        tools=True,
        as_of=True,
        retracts=True,
        forgets=True,
        exports=True,
        reading_tools=tool_arguments.READING,
        handles=frozenset({TurnCompleted, MemoryWritten, Delegated, ContextCompressing}),
    )

    def __init__(self, config: ProviderConfig) -> None:
        """Keep the configuration; the file is opened by `open`.

        Raises:
            ConfigError: an option is wrong.
        """
        super().__init__(config)
        self.path = config.home / FILE_NAME
        self._options = options_of(config)
        self._store: HolographicStore | None = None
        self._meaning: Meaning | None = None

    # -- life ---------------------------------------------------------------------------------

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]]:
        """Return the options, all of which are about search by meaning."""
        return SCHEMA

    def open(self) -> None:
        """Open the database, creating it if it is missing.

        Raises:
            Unavailable: the file is no database, damaged or of another release; the message
                names it and the remedy. Or the key of the embedder is missing.
            MissingProvider: what the embedder needs is not installed.
        """
        if self._store is not None:
            return
        if not self._options.embedder:
            self._store = HolographicStore(self.path, self.config.clock)
            return
        meaning = self._meaning_of(self._options)
        self._store = HolographicStore(self.path, self.config.clock, meaning.searching)
        self._meaning = meaning

    def shutdown(self) -> None:
        """Close the database; an open transaction is rolled back."""
        if self._meaning is not None:
            self._meaning.close()
            self._meaning = None
        if self._store is not None:
            self._store.close()
            self._store = None

    def report(self) -> str:
        """Say how many facts have no vector yet, and why if that is known."""
        meaning = self._meaning
        return meaning.report if meaning else ""

    def backup_paths(self) -> Sequence[Path]:
        """Return the database and the two files SQLite may keep beside it."""
        return [self.path.with_name(FILE_NAME + end) for end in ("", "-wal", "-shm")]

    def digest(self, after: str = "") -> Iterator[tuple[str, str]]:
        """Return the pairs of `holographic.digest`: every session, store and name.

        Raises:
            Transient: the database cannot be read now.
            Unavailable: the file is damaged.
        """
        store = self._opened
        with store.translated():
            yield from digest.pairs(store.db, after)

    # -- the lane -----------------------------------------------------------------------------

    def progress(self, lane: str) -> Progress | None:
        """Return the lane's committed progress, or None if the store has never seen it."""
        store = self._opened
        self._fill()
        with store.translated():
            return ledger.progress(store.db, lane)

    @contextmanager
    def transaction(self, fence: Fence) -> Iterator[Transaction]:
        """Open a transaction; facts, ledger and checkpoint commit as one (G4, G5).

        Raises:
            StaleEpoch: the store has seen a newer owner of the lane.
            Transient: another process holds the database for too long.
            Unavailable: the disk is full, or the file damaged.
        """
        with self._opened.lane(fence) as opened:
            yield opened
        self._fill()

    # -- hooks --------------------------------------------------------------------------------

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Keep what each side said as a fact of its own, verbatim."""
        store = self._opened
        with store.writing():
            store.utterances.introduce(event.user_name, ctx)
            store.utterances.introduce(event.assistant_name, ctx)
            store.utterances.say(_said(event), ctx)

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Follow the agent's store: add, replace or remove the fact of that store and scope."""
        kind = STORE_KINDS[event.store]
        store = self._opened
        with store.writing_in_order():
            if event.action == "add":
                store.kept.add(Note(kind, event.content), ctx)
            elif event.action == "replace":
                store.kept.replace(kind, event.old_text, event.content, ctx)
            else:
                store.kept.remove(kind, event.old_text, ctx)

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Forget what was said in some events, and the notes that nobody else has said."""
        store = self._opened
        with store.writing_in_order():
            store.utterances.retract(event_ids, ctx)
            store.kept.retract(event_ids, ctx)
            store.corrections.retract(event_ids, ctx)

    def on_pre_compress(self, event: ContextCompressing, ctx: HookContext) -> str:
        """Keep what is about to go, where the turns have not brought it already."""
        store = self._opened
        with store.writing_in_order():
            store.utterances.say_unsaid(_spoken(event.messages, "compression"), ctx)
        return ""

    def on_delegation(self, event: Delegated, ctx: HookContext) -> None:
        """Keep the task and, right after it, its result: who finds one finds the other."""
        said = [
            Utterance("delegation", speaker, text, tags=event.child_session)
            for speaker, text in (("assistant", event.task), ("sub-agent", event.result))
        ]
        store = self._opened
        with store.writing():
            store.utterances.say(said, ctx)

    # -- what is kept of somebody -------------------------------------------------------------

    def forget(self, scope: RecallScope) -> Residue:
        """Erase a scope's facts and all that was made of them; what a service was sent is named.

        Raises:
            Transient: another process holds the database for too long.
            Unavailable: the disk is full, or the file damaged.
        """
        residue = erasure.erase(self._opened, scope)
        if not (residue.erased and self._options.by_service):
            return residue
        sent = "the service that embeds facts was sent them; whether it keeps any, it alone knows"
        return Residue(residue.erased, (*residue.remains, sent))

    def export(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield facts, what entries of the stores said before, corrections, and speakers' names."""
        store = self._opened
        with store.translated():
            yield from erasure.stored(store.db, scope)

    # -- recall and tools ---------------------------------------------------------------------

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Return facts of the scope that answer a question, best first, within a budget.

        None if nothing fits the question, and none that is not worth its room (see `cutoff`). A
        blank question gets what matters most: what was kept, and what was said last.

        Raises:
            Transient: the database cannot be read now.
            Unavailable: the file is damaged.
        """
        store = self._opened
        with store.translated():
            if not query or query.isspace():
                found = essentials(store.db, ctx.scope, ctx.as_of)
            else:
                answer = store.recall.answer(query, ctx.scope, as_of=ctx.as_of)
                found = list(worth(answer, ctx.budget))
        given = within(found, ctx.budget)
        if ctx.explain:
            return [_recollection(scored, reasons.why(query, scored)) for scored in given]
        return [_recollection(scored) for scored in given]

    def system_prompt_block(self, scope: RecallScope) -> str:
        """Return what matters most of a person: what was kept, then what was said last.

        A scope of everyone's names nobody, so it has no block.
        """
        if scope.agent is None or scope.user is None:
            return ""
        store = self._opened
        with store.translated():
            found = essentials(store.db, scope)
        return "\n".join(f"- {' '.join(s.fact.content.split())}" for s in within(found, _SHOWN))

    def get_tool_schemas(self) -> Sequence[Mapping[str, Any]]:
        """Return the function objects of the tools that `tools.arguments` describes."""
        return tool_arguments.schemas()

    def handle_tool_call(
        self, tool: str, arguments: Mapping[str, Any], ctx: HookContext
    ) -> Mapping[str, Any]:
        """Run a tool within the caller's scope; ``{"ok": False, "error": …}`` says what is wrong.

        A writing tool takes effect once per event id, and answers a repetition the same (G4).
        """
        call = tool_arguments.parsed(tool, arguments)
        if isinstance(call, str):
            return calls.failed(call)
        if isinstance(call, tool_arguments.Reading):
            return self._read(call, ctx)
        store = self._opened
        with store.writing_in_order():
            return store.tools.write(call, ctx)

    def _read(self, call: tool_arguments.Reading, ctx: HookContext) -> Mapping[str, Any]:
        store = self._opened
        with store.translated():
            store.utterances.flush()  # inside a lane's transaction: find what came just before
            result, found = store.reading.answer(call, ctx)
        if found:
            with suppress(Transient), store.writing(wait=False):  # only a hint: see the class
                store.tools.count_retrieved(found)
        return result

    def _fill(self) -> None:
        """Let the facts of a committed transaction get their vectors: we have lanes."""
        if self._meaning is not None:
            self._meaning.fill()

    def _meaning_of(self, options: MeaningOptions) -> "Meaning":
        try:
            from memorybus_providers.holographic.meaning.meaning import Meaning

            return Meaning(self.path, self.config, options)
        except ImportError as error:
            extra = "embeddings" if options.by_service else "static-embeddings"
            raise MissingProvider(
                f"provider {self.config.name}: its embedder needs {error.name}; "
                f"install it with: pip install 'memorybus[{extra}]'"
            ) from error

    @property
    def _opened(self) -> HolographicStore:
        if self._store is None:
            raise Unavailable(f"{self.path}: not open; call open() first")
        return self._store


def _said(event: TurnCompleted) -> Iterable[Utterance]:
    """Return a turn's utterances; its messages stand in where neither side is given as text."""
    if not event.user and not event.assistant:
        return _spoken(event.messages)
    return (
        Utterance("user", event.user_name or "user", event.user),
        Utterance("assistant", event.assistant_name or "assistant", event.assistant),
    )


def _spoken(messages: Sequence[Message], kind: str = "") -> Iterator[Utterance]:
    """Yield what people and agents said in chat messages; tools' output and images are not."""
    for message in messages:
        role = message.get("role")
        if role in {"user", "assistant"}:
            speaker = str(message.get("name") or role)
            for text in _texts(message.get("content")):
                yield Utterance(kind or str(role), speaker, text)


def _texts(content: object) -> list[str]:
    """Return the texts of a message's content: a string, or a list of typed parts."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list | tuple) else ()
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return [text for text in texts if isinstance(text, str)]


def _recollection(scored: Scored, why: Why | None = None) -> Recollection:
    fact = scored.fact
    return Recollection(
        text=fact.content,
        session=fact.session,
        at=fact.at,
        speaker=fact.speaker,
        score=scored.score,
        event=scored.fact.event,
        until=scored.until,
        before=scored.before,
        why=why,
    )
