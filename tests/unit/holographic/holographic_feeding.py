"""Feeds events to a holographic provider as a lane does, and asks it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memorybus.events import Event, MemoryWritten, Position, Scope, SessionRef, TurnCompleted
from memorybus.ids import derived_id
from memorybus_providers.base import (
    Fence,
    HookContext,
    Progress,
    ProviderConfig,
    RecallContext,
    RecallScope,
    Recollection,
)
from memorybus_providers.dispatch import bind
from memorybus_providers.holographic import HolographicProvider

LANE = "p00"
ME = Scope(agent="coder", user="ann")
MINE = RecallScope("coder", "ann")
EVERYONE = RecallScope(None, None, None)
DAY = 86_400_000
AT = 1_700_000_000_000


@contextmanager
def opened(home: Path, **options: object) -> Iterator[HolographicProvider]:
    """Open a provider in a directory."""
    config = ProviderConfig(name="holographic", home=home, options=options)
    provider = HolographicProvider(config)
    provider.open()
    try:
        yield provider
    finally:
        provider.shutdown()


def context(
    n: int, scope: Scope = ME, session: str = "s1", at: int = AT, root: str = "root"
) -> HookContext:
    """Return the context of the event number `n`."""
    place = Position(0, f"{n}-0", n)
    return HookContext(scope, SessionRef(session, root), derived_id("test", n), place, at, 5.0)


def feed(
    provider: HolographicProvider,
    events: Sequence[Event],
    *,
    first: int = 1,
    epoch: int = 1,
    scope: Scope = ME,
    session: str = "s1",
    at: int = AT,
    root: str = "root",
) -> list[str | None]:
    """Apply events in one transaction, without those the ledger has; return their replies."""
    apply = bind(provider)
    contexts = [context(first + i, scope, session, at, root) for i in range(len(events))]
    ids = [ctx.event_id for ctx in contexts]
    replies = []
    with provider.transaction(Fence(LANE, epoch)) as transaction:
        known = transaction.applied(ids)
        for event, ctx in zip(events, contexts, strict=True):
            if ctx.event_id not in known:
                replies.append(apply(event, ctx))
        last = first + len(events) - 1
        transaction.record(ids, Progress(epoch, f"{last}-0", last))
    return replies


def turn(user: str, assistant: str = "", **more: Any) -> TurnCompleted:
    """Return a turn."""
    return TurnCompleted(user=user, assistant=assistant, **more)


def add(content: str, store: str = "memory") -> MemoryWritten:
    """Return an add."""
    return MemoryWritten(action="add", store=store, content=content)


def replace(old_text: str, content: str, store: str = "memory") -> MemoryWritten:
    """Return a replacement."""
    return MemoryWritten(action="replace", store=store, content=content, old_text=old_text)


def remove(old_text: str, store: str = "memory") -> MemoryWritten:
    """Return a removal."""
    return MemoryWritten(action="remove", store=store, old_text=old_text)


def ask(
    provider: HolographicProvider, question: str, scope: RecallScope = MINE, budget: int = 2_000
) -> Sequence[Recollection]:
    """Return what is recalled."""
    return provider.prefetch(question, RecallContext(scope, budget=budget))


def texts(
    provider: HolographicProvider, question: str, scope: RecallScope = MINE, budget: int = 2_000
) -> list[str]:
    """Return the recalled texts, best first."""
    return [found.text for found in ask(provider, question, scope, budget)]


def stored(provider: HolographicProvider) -> list[tuple[Any, ...]]:
    """Return all facts as rows, whatever the index says of them."""
    return provider.opened.db.execute(
        "select content, kind, speaker, at, seq, unhelpful, retrieval_count, helpful from facts "
        "left join judgements on judgements.scope = facts.scope and fact = facts.name "
        "order by facts.id"
    ).fetchall()


def shown(provider: HolographicProvider, query: str, scope: Scope = ME) -> list[dict[str, Any]]:
    """Return what the model sees of the facts it searches for, best first."""
    found = provider.handle_tool_call("memory_search", {"query": query}, context(9_999, scope))
    return list(found["results"])


def check_index(provider: HolographicProvider) -> None:
    """Fail if the full-text index differs from the facts."""
    provider.opened.db.execute(
        "insert into facts_fts(facts_fts, rank) values ('integrity-check', 1)"
    )
