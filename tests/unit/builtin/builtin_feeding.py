"""Feeds memory writes to a builtin provider as a lane does; also a program, to be killed."""

import sys
from pathlib import Path
from typing import Any

import msgspec
from memorybus.events import MemoryWritten, Position, Scope, SessionRef
from memorybus.ids import derived_id
from memorybus.testing import CrashPoint, crash_points, no_crash
from memorybus_providers.base import Fence, HookContext, Progress, ProviderConfig
from memorybus_providers.builtin import BuiltinProvider
from memorybus_providers.dispatch import bind

LANE = "p00"
ME = Scope(agent="coder", user="ann")


def provider_at(home: Path, crash: CrashPoint = no_crash, **options: Any) -> BuiltinProvider:
    """Return an unopened provider."""
    return BuiltinProvider(ProviderConfig(name="builtin", home=home, options=options, crash=crash))


def add(content: str, store: str = "memory") -> MemoryWritten:
    """Return an add."""
    return MemoryWritten(action="add", store=store, content=content)


def replace(old_text: str, content: str, store: str = "memory") -> MemoryWritten:
    """Return a replacement."""
    return MemoryWritten(action="replace", store=store, content=content, old_text=old_text)


def remove(old_text: str, store: str = "memory") -> MemoryWritten:
    """Return a removal."""
    return MemoryWritten(action="remove", store=store, old_text=old_text)


def feed(
    provider: BuiltinProvider,
    *events: MemoryWritten,
    first: int = 1,
    scope: Scope = ME,
    epoch: int = 1,
) -> None:
    """Apply events numbered from `first` in one transaction, skipping what the ledger knows."""
    apply = bind(provider)
    numbered = {derived_id("event", n): (n, event) for n, event in enumerate(events, first)}
    with provider.transaction(Fence(LANE, epoch)) as transaction:
        known = transaction.applied(list(numbered))
        for event_id, (n, event) in numbered.items():
            if event_id not in known:
                session = SessionRef(id=f"s{n}", root="s1")
                position = Position(0, f"5-{n}", n)
                apply(event, HookContext(scope, session, event_id, position, 1_000 * n, 5.0))
        last = first + len(events) - 1
        transaction.record(list(numbered), Progress(epoch, f"5-{last}", last))


def memory_file(home: Path) -> Path:
    """Return the agent's file."""
    return home / "memory" / "coder" / "MEMORY.md"


def user_file(home: Path) -> Path:
    """Return the person's file."""
    return home / "user" / "ann" / "USER.md"


def main(home: str, crash_at: str, first: str, events: str) -> None:
    """Open a home and apply events (JSON) in one transaction, dying at a crash point."""
    provider = provider_at(Path(home), crash_points(crash_at))
    provider.open()
    feed(provider, *msgspec.json.decode(events, type=list[MemoryWritten]), first=int(first))
    provider.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
