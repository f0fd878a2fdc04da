"""The provider's hooks. ``urllib3`` is imported when an instance is opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from memorybus.events import (
    Delegated,
    Derived,
    MemoryWritten,
    Reason,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
)

from memorybus_providers.base import (
    HookContext,
    RecallContext,
    RecallScope,
    Recollection,
    StoredMemory,
)
from memorybus_providers.errors import ProviderError
from memorybus_providers.mentisdb import options, thoughts, tools
from memorybus_providers.mentisdb.thoughts import Draft, Relation, Thought
from memorybus_providers.owners import MAX_OWNERS
from memorybus_providers.remote.provider import RemoteProvider, service_capabilities
from memorybus_providers.remote.texts import (
    clean_question,
    name_of,
    parse_milliseconds,
    replaced_entries,
    sendable,
)

if TYPE_CHECKING:
    from memorybus_providers.mentisdb.store import MentisStore


_EXPORT_SECONDS = 3_600.0  # seconds that an export may take

_ALL_OWNERS = RecallScope(None, None, None)


class MentisDbProvider(RemoteProvider["MentisStore"]):
    """Keeps conversations as thoughts in chains of MentisDB."""

    kind = "mentisdb"
    delivery = "lookup"
    capabilities = service_capabilities(
        tools.TOOLS,
        frozenset(
            (SessionStarted, TurnCompleted, MemoryWritten, SessionSwitched, Delegated, Derived)
        ),
        forgets=False,  # its REST API deletes nothing
    )
    package = "urllib3"
    options_type = options.MentisOptions
    _options: options.MentisOptions
    toolset = tools.TOOLS
    tunable = frozenset({"prefix", "results"})

    # -- opening ----------------------------------------------------------------------------------

    def connect(self) -> MentisStore:
        """Read the key; the connection is made by the first request."""
        from memorybus_providers.mentisdb.store import MentisStore

        return MentisStore(self._options, self.api_key(), self.config.clock)

    def health(self, deadline: float) -> str:
        """Ask the server, which proves that address and key are right."""
        with self._within(deadline) as store:
            store.list_chains(_ALL_OWNERS)
        return ""

    @contextmanager
    def _within(self, deadline: float) -> Iterator[MentisStore]:
        """Yield the store, whose requests share a deadline."""
        with self.client.within(deadline):
            yield self.client

    @contextmanager
    def _writing(self, ctx: HookContext) -> Iterator[MentisStore]:
        """Yield the store for a hook; after a failure, forget what is known of the session."""
        with self._within(ctx.deadline) as store:
            try:
                yield store
            except ProviderError:
                store.forget_session(ctx.scope, ctx.session.id)
                raise

    # -- write hooks ------------------------------------------------------------------------------

    def initialize(self, event: SessionStarted, ctx: HookContext) -> None:
        """Record from which session this one came."""
        self._join(event.parent, event.reason, ctx)

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Append what was said as one thought."""
        self._append(thoughts.drafts_of_turn(event, ctx), ctx)

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Append a new entry, which supersedes those that it replaces, or a removal."""
        with self._writing(ctx) as store:
            own = store.chain(ctx.scope)
            entries = store.search(own, [thoughts.store_tag(event.store)])
            stored = store.ledger(own, whole=False).current_thoughts(entries)
            text = sendable(event.content)
            if event.action != "remove" and any(thought.content == text for thought in stored):
                return
            drafts = thoughts.drafts_of_write(
                event, ctx, replaced_entries(event, stored, lambda thought: thought.content)
            )
            store.append(own, drafts, ctx)

    def on_delegation(self, event: Delegated, ctx: HookContext) -> None:
        """Append what a sub-agent did."""
        self._append(thoughts.drafts_of_delegation(event, ctx), ctx)

    def on_session_switch(self, event: SessionSwitched, ctx: HookContext) -> None:
        """Record from which session this one came; a branch gets its own chain."""
        self._join(event.parent, event.reason, ctx)

    def on_derived(self, event: Derived, ctx: HookContext) -> None:
        """Append a summary or a fact, unless something that it came from was retracted already."""
        if event.kind not in thoughts.CONCLUSIONS:
            return
        with self._writing(ctx) as store:
            own = store.chain(ctx.scope)
            if store.search(own, [*map(thoughts.retracted_tag, event.sources)], 1):
                return
            old = store.search(own, [*map(thoughts.event_tag, event.supersedes)])
            for draft in thoughts.drafts_of_conclusion(event, ctx, old):
                store.append_alone(own, draft)

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Append one thought that retracts those of the events, and what was concluded of them."""
        tags = [thoughts.event_tag(event_id) for event_id in event_ids]
        root = name_of(ctx.session.root)
        with self._writing(ctx) as store:
            own = store.chain(ctx.scope)
            ledger = store.ledger(own)
            undone = [
                Relation("Invalidates", thought.id, None if chain == own else chain)
                for chain in ledger.chains(own)
                for thought in ledger.current_thoughts(store.search(chain, tags))
                if thought.tag("root") == root
            ]
            store.append_alone(own, thoughts.draft_of_undo(undone, event_ids, ctx))

    def knows(self, event_id: str, ctx: HookContext) -> bool:
        """Return whether MentisDB has all thoughts of an event."""
        with self._writing(ctx) as store:
            own, place = store.chain(ctx.scope), store.place(ctx.scope, ctx.session.id)
            chains = dict.fromkeys((place, own))
            return any(_is_whole(store.thoughts_of_event(chain, event_id)) for chain in chains)

    def _append(self, drafts: Sequence[Draft], ctx: HookContext) -> None:
        if drafts:
            with self._writing(ctx) as store:
                store.append(store.place(ctx.scope, ctx.session.id), drafts, ctx)

    def _join(self, parent: str, reason: Reason, ctx: HookContext) -> None:
        with self._writing(ctx) as store:
            store.join(parent, reason, ctx)

    # -- tools and recall -------------------------------------------------------------------------

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Return thoughts near a question from all branches; without one, the newest entries."""
        with self._within(ctx.deadline) as store:
            return find_near(store, ctx.scope, query, self._options.results)

    def run_tool(self, call: tools.MentisCall, ctx: HookContext) -> Mapping[str, Any]:
        if isinstance(call, tools.MentisSearch):
            asked = RecallContext(RecallScope.own(ctx.scope), deadline=ctx.deadline)
            recollections = self.prefetch(call.text, asked)[: call.limit]
            return {
                "results": [
                    {"text": recollection.text, "type": recollection.source, "at": recollection.at}
                    for recollection in recollections
                ]
            }
        drafts = thoughts.drafts_of_tool_call(
            call.thought_type,
            call.content,
            ctx,
            importance=call.importance,
            tags=call.tags,
            concepts=call.concepts,
        )
        self._append(drafts, ctx)
        return {"appended": len(drafts)}

    # -- export -----------------------------------------------------------------------------------

    def export(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield the thoughts of a scope's chains, including retracted ones."""
        with self._within(_EXPORT_SECONDS) as store:
            for chain in store.list_chains(scope):
                yield from export_chain(store, chain)


def _is_whole(stored: Sequence[Thought]) -> bool:
    return bool(stored) and len(stored) >= int(stored[0].tag("parts") or 1)


def find_near(store: MentisStore, scope: RecallScope, query: str, most: int) -> list[Recollection]:
    """Return thoughts near a question, best first; without a question, the newest entries.

    Args:
        scope: the owners; at most `MAX_OWNERS` of them are searched.
        most: the most thoughts of each owner.
    """
    question = clean_question(query)
    owners = dict.fromkeys(map(thoughts.owners_chain, store.list_chains(scope)))
    find = _search_ranked if question else _newest_entries
    found = [find(store, own, question, most) for own in list(owners)[:MAX_OWNERS]]
    return sorted(
        (recollection for some in found for recollection in some),
        key=lambda recollection: -recollection.score,
    )


def _search_ranked(store: MentisStore, own: str, text: str, most: int) -> list[Recollection]:
    """Return the thoughts near a text in an owner's chain and its branches."""
    ledger = store.ledger(own)
    hits = store.search_near(ledger.chains(own), text, 2 * most + 10)  # some are invalid
    current = [hit for hit in hits if ledger.is_current(hit.thought)]
    return [_to_recollection(hit.thought, hit.score.total) for hit in current[:most]]


def _newest_entries(store: MentisStore, own: str, _: str, most: int) -> list[Recollection]:
    entries = store.search(own, [thoughts.store_tag(name) for name in ("user", "memory")])
    newest = store.ledger(own, whole=False).current_thoughts(entries)[-most:]
    return [_to_recollection(thought, 0.0) for thought in reversed(newest)]


def _to_recollection(thought: Thought, score: float) -> Recollection:
    return Recollection(
        thought.content,
        session=thought.tag("session"),
        at=parse_milliseconds(thought.tag("at")),
        score=score,
        source=thought.thought_type,
        event=thought.tag("event"),
    )


def export_chain(store: MentisStore, chain: str) -> Iterator[StoredMemory]:
    """Yield the memories of a chain, the oldest first, including retracted ones."""
    memories = filter(thoughts.is_memory, store.all_thoughts(chain))
    yield from (_stored(memory, chain) for memory in memories)


def _stored(thought: Thought, chain: str) -> StoredMemory:
    _, agent, user, workspace, *_ = chain.split("__")
    return StoredMemory(
        thought.content,
        agent=agent,
        user=user,
        workspace=workspace.removeprefix("w-") if workspace != "w" else "",
        kind=thought.thought_type,
        session=thought.tag("session"),
        at=parse_milliseconds(thought.tag("at")),
        event=thought.tag("event"),
    )
