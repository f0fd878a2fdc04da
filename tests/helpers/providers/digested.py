"""Histories for digests: stories with texts, applied to a shipped provider in any mix of keys."""

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
from memorybus.events import (
    AnyEvent,
    ContextCompressing,
    Envelope,
    MemoryCurated,
    MemoryWritten,
    Position,
    Scope,
    ToolCalled,
    TurnCompleted,
)
from memorybus.ids import derived_id
from memorybus.lineage.graph import start
from memorybus.redis.keys import session_key, store_key
from memorybus_providers.base import (
    Fence,
    HookContext,
    Progress,
    ProviderConfig,
    TransactionalProvider,
)
from memorybus_providers.dispatch import bind
from memorybus_providers.registry import create

from helpers.stories.stories import Story

CASES = ("builtin", "holographic")
_WORDS = ("roses", "the garden", "a walnut", "tea at noon", "the inspector", "grease")


class Told(msgspec.Struct, frozen=True):
    """One event of a history, as a lane hands it over."""

    envelope: Envelope

    @classmethod
    def of(cls, session: str, event: AnyEvent, number: int) -> "Told":
        """Return an event of a session; of a store, if it is a memory write."""
        scope = Scope(agent="coder", user="ann")
        ref = start(session)
        key = session_key(scope, ref.root)
        if isinstance(event, MemoryWritten | MemoryCurated):
            key = store_key(event.store if isinstance(event, MemoryWritten) else "user", scope)
        event_id = derived_id("digested", session, number)
        return cls(Envelope(id=event_id, key=key, scope=scope, session=ref, at=number, event=event))

    @classmethod
    def added(cls, told: Sequence["Told"], text: str) -> "Told":
        """Return a memory write that follows a history."""
        return cls.of("the-end", MemoryWritten(action="add", store="user", content=text), len(told))


def story_of(rng: random.Random) -> list[Told]:
    """Return a history: what stories do, with texts, writes, notes and compressions."""
    told: list[Told] = []
    for number in range(3):
        for envelope in Story(rng, f"story-{number}").envelopes:
            told.append(Told(_with_text(envelope, rng)))
            told += _besides(envelope, rng, 1_000 * number + len(told))
    return told


def _with_text(envelope: Envelope, rng: random.Random) -> Envelope:
    if not isinstance(envelope.event, TurnCompleted):
        return envelope
    said = TurnCompleted(
        user=f"about {rng.choice(_WORDS)} {envelope.at}",
        assistant=f"yes, {rng.choice(_WORDS)}",
        user_name=rng.choice(("Ann", "Ben Gray")),
        ordinal=envelope.event.ordinal,
    )
    return msgspec.structs.replace(envelope, event=said)


def _besides(envelope: Envelope, rng: random.Random, number: int) -> list[Told]:
    text, other = rng.choice(_WORDS), rng.choice(_WORDS)
    store = rng.choice(("memory", "user"))
    write = rng.choice(
        (
            MemoryWritten(action="add", store=store, content=text),
            MemoryWritten(action="replace", store=store, content=text, old_text=other),
            MemoryWritten(action="remove", store=store, old_text=text),
        )
    )
    messages = ({"role": "user", "content": f"about {text}"},)
    mine = [
        ContextCompressing(messages=messages, compression_count=1),
        ToolCalled(
            provider="holographic",
            tool="memory_add",
            arguments={"content": text, "category": other},
        ),
    ]
    ids = [derived_id("besides", envelope.id, n) for n in range(len(mine))]
    here = [
        Told(msgspec.structs.replace(envelope, id=event_id, event=event))
        for event_id, event in zip(ids, mine, strict=True)
        if rng.random() < 0.5
    ]
    return [*here, Told.of(envelope.session.id, write, number)]


def interleaved(told: Sequence[Told], rng: random.Random) -> list[Told]:
    """Return a history in another order that keeps the order of every key."""
    keys = [one.envelope.key for one in told]
    waiting = {key: [one for one in told if one.envelope.key == key] for key in keys}
    rng.shuffle(keys)
    return [waiting[key].pop(0) for key in keys]


def digest_after(
    kind: str, home: Path, told: Sequence[Told], rng: random.Random, most: int = 10
) -> list[tuple[str, str]]:
    """Apply a history in batches of any size; return the digest."""
    provider = create(kind, ProviderConfig(name=kind, home=home))
    assert isinstance(provider, TransactionalProvider)
    provider.open()
    try:
        done = 0
        while done < len(told):
            size = rng.randint(1, most)
            apply_batch(provider, told[done : done + size], done)
            done += size
        return list(provider.digest() or ())
    finally:
        provider.shutdown()


def apply_batch(provider: TransactionalProvider, batch: Sequence[Told], done: int) -> None:
    """Apply events in one transaction; `done` is how many came before."""
    apply = bind(provider)
    with provider.transaction(Fence("p00", 1)) as transaction:
        for n, one in enumerate(batch, done + 1):
            envelope = one.envelope
            position = Position(0, f"{n}-0", n)
            context = HookContext(
                envelope.scope, envelope.session, envelope.id, position, envelope.at, 5.0
            )
            apply(envelope.event, context)
        last = done + len(batch)
        ids = [one.envelope.id for one in batch]
        transaction.record(ids, Progress(1, f"{last}-0", last))
