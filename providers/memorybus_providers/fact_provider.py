"""The base class of providers of facts, whatever store keeps them.

What is kept, how it is found and what tools do is the same for all stores; a store reads and writes
rows. The provider of a store subclasses `FactProvider`, opens the store and names its kind.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, tzinfo
from itertools import islice
from typing import Any, ClassVar, Protocol

import msgspec
from memorybus.errors import MissingProvider, Unavailable, install_command
from memorybus.events import (
    ContextCompressing,
    Delegated,
    Derived,
    MemoryCurated,
    MemoryWritten,
    SessionEnded,
    TurnCompleted,
)
from memorybus.small_talk import asks_for_profile

from memorybus_providers.base import (
    Capabilities,
    Fence,
    HookContext,
    MemoryOwner,
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
from memorybus_providers.deriving.deriver import Due, Material, Passage
from memorybus_providers.deriving.extractive import ExtractiveDeriver
from memorybus_providers.embedding.options import MeaningOptions, cache_of
from memorybus_providers.finding.profile import profile
from memorybus_providers.finding.search import FactSearch, fit_budget
from memorybus_providers.finding.source import FactSource
from memorybus_providers.language.times import DAY_MS
from memorybus_providers.ranking import reasons
from memorybus_providers.ranking.cutoff import cut_off
from memorybus_providers.ranking.facts import CONCLUSION, name_of_kept
from memorybus_providers.ranking.ranking import LAST_MS, Fact, Scored
from memorybus_providers.remembering.instructions import INSTRUCTION, instructions_of
from memorybus_providers.remembering.notes import KINDS, Note
from memorybus_providers.remembering.parts import Parts
from memorybus_providers.remembering.utterances import (
    delegation_utterances,
    message_utterances,
    turn_utterances,
)
from memorybus_providers.tools import arguments as tool_arguments
from memorybus_providers.tools.reading import ReadingTools, WritingTools, failure_result

_MAX_BLOCK_CHARS = 1_150
"""Characters of facts in a system prompt: `builtin` and the prompt itself have more to say."""

_PROFILE_CHARS = 2_000  # characters of what a deriver gets to know of a person

_INSTRUCTION_LABEL = "standing instruction"
"""Stands where others have their speaker, before what a person told the agent to keep to."""

DERIVED = "derived"  # the category of notes that a deriver concluded

_BLOCK_SECONDS = 5.0
"""Seconds that a block for the system prompt may take: it is built ahead of the session."""


class OpenParts(Parts, Protocol):
    """The parts of a store in an open transaction."""

    @property
    def source(self) -> FactSource:
        """The facts that the parts see: those they wrote, and those from before."""
        ...


class FactStore(Protocol):
    """An open store of facts. It raises the errors of `memorybus_providers.errors`."""

    def close(self) -> None:
        """Release everything; an open transaction is rolled back."""
        ...

    def progress(self, lane: str) -> Progress | None:
        """Return a lane's committed progress."""
        ...

    def lane(self, fence: Fence) -> AbstractContextManager[Transaction]:
        """Open the transaction of a lane's owner."""
        ...

    def writing(self, *, in_order: bool = False) -> AbstractContextManager[OpenParts]:
        """Join the open transaction, or open one and commit it.

        Args:
            in_order: whether everything written before must be visible.
        """
        ...

    def reading(self, scope: RecallScope, seconds: float) -> AbstractContextManager[FactSearch]:
        """Open a search; within a lane's transaction it sees what that has written.

        Args:
            seconds: how long a reader waits at most.
        """
        ...

    def count_retrieved(self, rows: Sequence[int], now: int) -> None:
        """Count one retrieval of each fact; the count is dropped if it would have to wait."""
        ...

    def note_used(self, rows: Sequence[int], now: int) -> None:
        """Note when facts were used; the note is dropped if it would have to wait."""
        ...

    def digest(self, after: str) -> Iterator[tuple[str, str]]:
        """Return the pairs of key and digest (G8)."""
        ...

    def erase(self, scope: RecallScope) -> Residue:
        """Erase what is kept of a scope; see `MemoryProvider.forget`."""
        ...

    def stored(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield the memories that `erase` would erase."""
        ...

    def curated(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield what was kept of a scope; see `MemoryProvider.curated`."""
        ...

    def owners(self, after: tuple[str, str, str] | None) -> Iterator[MemoryOwner]:
        """Yield the owners whose facts are kept; see `MemoryProvider.owners`."""
        ...


class Meaning(Protocol):
    """The search by meaning of an open instance."""

    @property
    def report(self) -> str:
        """What an operator should know of the vectors, in one line; "" for nothing."""
        ...

    def fill(self) -> None:
        """Begin to fill in missing vectors; if that has begun already, look for some now."""
        ...

    def close(self) -> None:
        """End its threads."""
        ...


class FactProvider(TransactionalProvider):
    """Remembers what was said and kept, and finds it by words.

    Delivery is ``transactional``: facts, ledger and checkpoint commit together, so an event's
    effect happens once (G4) and only for the current owner of a lane (G5). Recall reads and never
    waits for a writer. ``retrieval_count`` counts what tools listed. Of what prefetches recalled,
    only the day is noted, so that a fact is written once a day at most. Both are hints: one that
    would have to wait for a long transaction is dropped.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        recall=True,
        tools=True,
        as_of=True,
        retracts=True,
        forgets=True,
        exports=True,
        curates=True,
        forgetting_tools=tool_arguments.FORGETTING,
        reading_tools=tool_arguments.READING,
        handles=frozenset(
            {
                TurnCompleted,
                MemoryWritten,
                MemoryCurated,
                Delegated,
                ContextCompressing,
                SessionEnded,
                Derived,
            }
        ),
    )
    derives: ClassVar[bool] = True
    facts: FactStore | None = None
    """The open store."""
    meaning: Meaning | None = None
    """Its search by meaning, if an embedder is configured."""
    _options: MeaningOptions = MeaningOptions()
    """What makes vectors of facts."""

    @property
    def opened(self) -> FactStore:
        """The open store.

        Raises:
            Unavailable: it is not open.
        """
        if self.facts is None:
            raise Unavailable(f"provider {self.config.name}: not open; call open() first")
        return self.facts

    def fetch(self) -> None:
        """Fetch the model that the embedder's name asks fastembed for."""
        if not self._options.fetched:
            return
        try:
            from memorybus_providers.embedding.fetched import load

            load(self._options.fetched, cache_of(self.config), fetching=True)
        except ImportError as error:
            raise missing_library(self.config, self._options, error) from error

    def shutdown(self) -> None:
        """Close the store; an open transaction is rolled back."""
        if self.meaning is not None:
            self.meaning.close()
            self.meaning = None
        if self.facts is not None:
            self.facts.close()
            self.facts = None

    def report(self) -> str:
        """Say how many facts have no vector yet, and why if that is known."""
        meaning = self.meaning
        return meaning.report if meaning else ""

    def digest(self, after: str = "") -> Iterator[tuple[str, str]]:
        """Return the pairs of every session, store and name.

        Raises:
            Transient: the store cannot be read now.
            Unavailable: it is away, or damaged.
        """
        return self.opened.digest(after)

    # -- the lane -----------------------------------------------------------------------------

    def progress(self, lane: str) -> Progress | None:
        """Return the lane's committed progress, or None if the store has never seen it."""
        store = self.opened
        self._fill()
        return store.progress(lane)

    @contextmanager
    def transaction(self, fence: Fence) -> Iterator[Transaction]:
        """Open a transaction; facts, ledger and checkpoint commit as one (G4, G5).

        Raises:
            LeaseLost: the store has seen a newer owner of the lane.
            Transient: another process holds what is needed for too long.
            Unavailable: the store is away, full or damaged.
        """
        with self.opened.lane(fence) as opened:
            yield opened
        self._fill()

    def _fill(self) -> None:
        """Let the facts of a committed transaction get their vectors; only lanes call this."""
        if self.meaning is not None:
            self.meaning.fill()

    # -- hooks --------------------------------------------------------------------------------

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Keep what each side said verbatim, and what the person told the agent to keep to."""
        with self.opened.writing() as parts:
            parts.utterances.add_speaker(event.user_name, ctx)
            parts.utterances.add_speaker(event.assistant_name, ctx)
            parts.utterances.append(turn_utterances(event), ctx)
            for note in instructions_of(event):
                parts.notes.add(note, ctx)
            if ends_stretch(event, self.config.derive_every_turns):
                self._note_due(parts, ctx)

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Follow the agent's store: add, replace or remove the fact of that store and scope.

        What was concluded of an entry goes with it, and its session is due to be derived anew.
        """
        kind, ended = KINDS[event.store], None
        with self.opened.writing(in_order=True) as parts:
            if event.action == "add":
                parts.notes.add(Note(kind, event.content), ctx)
            elif event.action == "replace":
                ended = parts.notes.replace(kind, event.old_text, event.content, ctx)
            else:
                ended = parts.notes.remove(kind, event.old_text, ctx)
            if ended and parts.derivations.retract_entry(ended):
                self._note_due(parts, ctx)

    def on_memory_curated(self, event: MemoryCurated, ctx: HookContext) -> None:
        """Keep the state of a fact under its name, whether or not the fact is there yet."""
        if ":" in event.memory:  # another backend's, as a skill
            return
        with self.opened.writing() as parts:
            parts.curations.set(event.memory, event.after, event.successor, ctx)

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Forget what was said in some events, and their notes that no other event has said.

        The session is due, since conclusions went with their sources, or will when they come.
        """
        with self.opened.writing(in_order=True) as parts:
            parts.utterances.retract(event_ids, ctx)
            events = [*event_ids, *parts.derivations.retract(event_ids, ctx)]
            parts.notes.retract(events, ctx)
            parts.corrections.retract(events, ctx)
            self._note_due(parts, ctx)

    def on_pre_compress(self, event: ContextCompressing, ctx: HookContext) -> str:
        """Keep what is about to leave the window, unless the turns have brought it already.

        The reply is what the session's summary should keep of it.
        """
        with self.opened.writing(in_order=True) as parts:
            parts.utterances.append_unsaid(message_utterances(event.messages, "compression"), ctx)
            self._note_due(parts, ctx)
        derives = event.wants_reply and self.config.derive_every_turns
        return self._contribution(event, ctx) if derives else ""

    def _contribution(self, event: ContextCompressing, ctx: HookContext) -> str:
        """Return the newest summary that a model made of the session, and the extractive one."""
        scope = RecallScope.own(ctx.scope)
        with self.opened.reading(scope, _BLOCK_SECONDS) as search:
            known = search.source.conclusions(ctx.session.id, scope)
        paraphrased = (
            conclusion.text
            for conclusion in known
            if conclusion.kind == "summary" and conclusion.deriver != ExtractiveDeriver.name
        )
        said = [
            Passage(ctx.event_id, utterance.content, utterance.speaker, ctx.at, utterance.kind)
            for utterance in message_utterances(event.messages)
        ]
        due = Due(ctx.event_id, ctx.at, ctx.scope, ctx.session)
        concluded = ExtractiveDeriver().derive(Material(due, said))
        chosen = (conclusion.text for conclusion in concluded if conclusion.kind == "summary")
        return "\n".join([*islice(paraphrased, 1), *chosen])

    def on_session_end(self, event: SessionEnded, ctx: HookContext) -> None:
        """Note that the session is due to be derived."""
        if self.config.derive_every_turns:
            with self.opened.writing() as parts:
                self._note_due(parts, ctx)

    def on_derived(self, event: Derived, ctx: HookContext) -> None:
        """Keep a conclusion. A fact is also a note, and corrects the fact that it supersedes."""
        with self.opened.writing(in_order=True) as parts:
            kept = parts.derivations.add(event, ctx)
            if not kept or event.kind != "fact":
                return
            name = parts.notes.add(Note(CONCLUSION, event.text, DERIVED), ctx) or ""
            for text in parts.derivations.texts(event.supersedes, ctx)[:1]:
                former = name_of_kept(ctx.scope, CONCLUSION, text)
                if former != name:
                    parts.corrections.add(former, "", name, ctx)

    def _note_due(self, parts: Parts, ctx: HookContext) -> None:
        if self.config.derive_every_turns:
            parts.derivations.note_due(self.config.derivers, ctx)

    def on_delegation(self, event: Delegated, ctx: HookContext) -> None:
        """Keep the task and, right after it, its result, so that they are found together."""
        with self.opened.writing() as parts:
            parts.utterances.append(delegation_utterances(event), ctx)

    # -- what is kept of somebody -------------------------------------------------------------

    def forget(self, scope: RecallScope) -> Residue:
        """Erase a scope's facts and all that was derived of them.

        The residue names the service that was sent facts to embed them.
        """
        residue = self.opened.erase(scope)
        if not (residue.erased and self._options.by_service):
            return residue
        sent = "the service that embeds facts was sent them; whether it keeps any, it alone knows"
        return Residue(residue.erased, (*residue.remains, sent))

    def export(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield facts, what entries of the stores said before, corrections, and speakers' names."""
        return self.opened.stored(scope)

    def curated(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield entries of the stores and notes; a standing instruction holds until it is ended."""
        return self.opened.curated(scope)

    def owners(self, after: tuple[str, str, str] | None = None) -> Iterator[MemoryOwner]:
        """Yield each scope with the number of its facts."""
        return self.opened.owners(after)

    # -- deriving -----------------------------------------------------------------------------

    def due(self, deriver: str, most: int) -> list[Due]:
        """Return sessions that are due for a deriver, those that wait longest first."""
        with self.opened.writing() as parts:
            return parts.derivations.due(deriver, most)

    def settle(self, deriver: str, done: Iterable[Due]) -> None:
        """Forget that sessions were due: the deriver's conclusions are in the log."""
        with self.opened.writing() as parts:
            parts.derivations.settle(deriver, done)

    def material(self, due: Due) -> Material:
        """Return what a session and its person are concluded from, as it was at the cause."""
        scope, session = RecallScope.own(due.scope), due.session
        with self.opened.reading(scope, _BLOCK_SECONDS) as search:
            said = search.source.said_in(session.id, session.root, due.at, scope)
            lines = profile(search.source, scope, _PROFILE_CHARS, due.at, self.config.zone)
            known = search.source.conclusions(session.id, scope)
        with self.opened.writing() as parts:
            retracted = parts.derivations.retracted(due.scope)
        essentials = [
            _passage(msgspec.structs.replace(s.fact, content=t))
            for s, t in lines
            if s.fact.event not in retracted
        ]
        passages = [_passage(fact) for fact in said if fact.event not in retracted]
        # Without its own conclusions, a cause that is derived again leads to the same events.
        before = [conclusion for conclusion in known if conclusion.at < due.at]
        return Material(due, passages, essentials, before)

    # -- recall and tools ---------------------------------------------------------------------

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Return facts of the scope that answer a question, best first, within a budget.

        A fact that is not worth its room is left out (see `cutoff`), so the result may be empty. A
        question that is blank, or asks what is known of the person, gets the profile.

        Raises:
            Transient: the store cannot be read now.
            Unavailable: it is away, or damaged.
        """
        now = self.config.clock.now_ms() if ctx.as_of is None else ctx.as_of
        with self.opened.reading(ctx.scope, ctx.deadline) as search:
            zone = self.config.zone
            if not query or query.isspace() or asks_for_profile(query):
                given = profile(search.source, ctx.scope, ctx.budget, ctx.as_of, zone, derived=True)
            else:
                answer = search.answer(
                    query, ctx.scope, as_of=ctx.as_of, now=now, zone=zone, for_prompt=True
                )
                given = list(fit_budget(cut_off(answer, ctx.budget), ctx.budget, query))
        if ctx.as_of is None and not ctx.explain:
            self._note_used([scored.fact for scored, _ in given], now)
        if ctx.explain:
            return [
                _recollection(scored, text, reasons.explain(query, scored, now, zone))
                for scored, text in given
            ]
        return [_recollection(scored, text) for scored, text in given]

    def _note_used(self, recalled: Sequence[Fact], now: int) -> None:
        kept = [fact for fact in recalled if fact.place is None and fact.id > 0]
        if rows := [fact.id for fact in kept if now - fact.used >= DAY_MS]:
            self.opened.note_used(rows, now)

    def system_prompt_block(self, scope: RecallScope) -> str:
        """Return what is known of a person, as a question for that is answered (`profile`).

        A scope that names no agent or no person has no block.
        """
        if scope.agent is None or scope.user is None:
            return ""
        with self.opened.reading(scope, _BLOCK_SECONDS) as search:
            found = profile(
                search.source, scope, _MAX_BLOCK_CHARS, zone=self.config.zone, derived=True
            )
        return "\n".join(_lines(found, self.config.zone))

    def get_tool_schemas(self) -> Sequence[Mapping[str, Any]]:
        """Return the function objects of the tools that `tools.arguments` describes."""
        return tool_arguments.schemas()

    def handle_tool_call(
        self, tool: str, arguments: Mapping[str, Any], ctx: HookContext
    ) -> Mapping[str, Any]:
        """Run a tool within the caller's scope; ``{"ok": False, "error": …}`` says what is wrong.

        A writing tool takes effect once per event id, and answers a repetition the same (G4).
        """
        call = tool_arguments.parse_call(tool, arguments)
        if isinstance(call, str):
            return failure_result(call)
        if isinstance(call, tool_arguments.Reading):
            return self._read(call, ctx)
        with self.opened.writing(in_order=True) as parts:
            if isinstance(call, tool_arguments.ForgetFact):
                self._note_due(parts, ctx)
            return WritingTools(parts, parts.source).write(call, ctx)

    def _reading_tools(self, search: FactSearch) -> ReadingTools:
        return ReadingTools(search, self.config.clock.now_ms(), self.config.zone)

    def _read(self, call: tool_arguments.Reading, ctx: HookContext) -> Mapping[str, Any]:
        with self.opened.reading(RecallScope.own(ctx.scope), ctx.deadline) as search:
            result, found = self._reading_tools(search).answer(call, ctx)
        if found:
            self.opened.count_retrieved([fact.id for fact in found], self.config.clock.now_ms())
        return result


def ends_stretch(event: TurnCompleted, every: int) -> bool:
    """Return whether a session is due to be derived after a turn: after every `every` turns."""
    return every > 0 and event.ordinal >= 0 and (event.ordinal + 1) % every == 0


def _passage(fact: Fact) -> Passage:
    return Passage(fact.event, fact.content, fact.speaker, fact.at, fact.kind)


def missing_library(
    config: ProviderConfig, options: MeaningOptions, error: ImportError
) -> MissingProvider:
    """Return the error of an embedder whose library is not installed."""
    local = "fastembed" if options.fetched else "local-embeddings"
    extra = "embeddings" if options.by_service else local
    return MissingProvider(
        f"provider {config.name}: its embedder needs {error.name}; run: {install_command(extra)}"
    )


def _lines(found: Iterable[tuple[Scored, str]], zone: tzinfo) -> Iterator[str]:
    """Yield the lines of a block; what was kept stands bare, so that it is told once of several."""
    for scored, text in found:
        fact, label = scored.fact, _label(scored.fact)
        at = datetime.fromtimestamp(min(fact.at, LAST_MS) / 1000, zone) if fact.at else None
        known = ", ".join(filter(None, (f"{at:%Y-%m-%d}" if at else "", label)))
        cut = text != fact.content and fact.event
        more = f" (all of it: memorybus events get {fact.event})" if cut else ""
        yield f"- {f'[{known}] ' if label else ''}{' '.join(text.split())}{more}"


def _label(fact: Fact) -> str:
    """Return who said a fact, or what it is."""
    return _INSTRUCTION_LABEL if fact.category == INSTRUCTION else fact.speaker


def _recollection(scored: Scored, text: str, why: Why | None = None) -> Recollection:
    fact = scored.fact
    return Recollection(
        text=text,
        truncated=text != fact.content,
        session=fact.session,
        at=fact.at,
        speaker=_label(fact),
        score=scored.score,
        event=scored.fact.event,
        until=scored.until,
        before=scored.before,
        why=why,
    )
