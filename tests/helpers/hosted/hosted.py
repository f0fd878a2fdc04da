"""Hosted Hermes plugins in tests: instances, contexts, what a plugin's process has recorded."""

import contextlib
import json
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memorybus.errors import ProviderError
from memorybus.events import Position, Scope, SessionRef, TurnCompleted
from memorybus.ids import new_id
from memorybus_providers.adapters.hermes import HostedHermesProvider
from memorybus_providers.base import HookContext, ProviderConfig, RecallContext, RecallScope
from memorybus_providers.registry import create

from helpers.fake_hermes import PLUGINS


def hosted(
    plugin: str, home: Path, python: Path, *, stands_for: str = "", **options: Any
) -> HostedHermesProvider:
    """Return an unopened instance: of a plugin of the tests, or of one of Hermes's own."""
    own = PLUGINS / plugin
    kind = f"hermes:{own if own.is_dir() else plugin}"
    table = {"hermes_python": str(python), "idle": 0.5, **options}
    config = ProviderConfig(name=home.name, home=home, options=table, stands_for=stands_for)
    made = create(kind, config)
    assert isinstance(made, HostedHermesProvider)
    return made


def opened(plugin: str, home: Path, python: Path, **options: Any) -> HostedHermesProvider:
    """Return an open instance; see `hosted`."""
    provider = hosted(plugin, home, python, **options)
    provider.open()
    return provider


def context(
    session: str = "s1", *, user: str = "default", deadline: float = 60.0, event: str = ""
) -> HookContext:
    """Return a context of an event, of another one each time unless its id is given."""
    ref, event_id = SessionRef(session, session), event or new_id()
    return HookContext(Scope(user=user), ref, event_id, Position(0, "1-0", 1), 0, deadline)


def asking(session: str = "s1", *, user: str = "default", deadline: float = 60.0) -> RecallContext:
    return RecallContext(RecallScope(user=user), SessionRef(session, session), deadline=deadline)


def say(provider: HostedHermesProvider, text: str, session: str = "s1", **of: Any) -> None:
    """Apply a turn."""
    provider.sync_turn(TurnCompleted(user=text, assistant="ok"), context(session, **of))


def insist(
    provider: HostedHermesProvider, text: str, session: str = "s1", *, tries: int, **of: Any
) -> list[ProviderError]:
    """Apply a turn as a lane does, again until it is applied; return the errors on the way."""
    event, errors = new_id(), list[ProviderError]()
    while len(errors) < tries:
        try:
            say(provider, text, session, event=event, **of)
        except ProviderError as error:
            errors.append(error)
        else:
            return errors
    raise errors[-1]


def calls(home: Path, *hooks: str) -> list[dict[str, Any]]:
    """Return what a recorder was called with, of some hooks or of all."""
    path = home / "calls.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [one for one in map(json.loads, lines) if not hooks or one["hook"] in hooks]


def turns(home: Path) -> list[str]:
    """Return the turns that a recorder has recorded."""
    return [one["text"] for one in calls(home, "turn")]


def sent(home: Path) -> list[str]:
    """Return what the plugin `writer` has sent."""
    path = home / "sent"
    return path.read_text().splitlines() if path.exists() else []


def children(home: Path) -> list[int]:
    """Return the process ids of the children below an instance's home that were last started."""
    found = [path.read_text() for path in home.rglob("hermes-host.lock")]
    # Signals to the groups 0 and 1 would go to the tests, and to all processes there are.
    return [int(text) for text in found if text.isdecimal() and 1 < int(text) < 1 << 31]


def is_alive(pid: int) -> bool:
    """Whether any thread of a process runs: a killed one's close its sockets one by one."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return len(tasks) > 1 or ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    return False


@contextlib.contextmanager
def ended(homes: Sequence[Path]) -> Iterator[None]:
    """End what plugins still run when a test is over."""
    try:
        yield
    finally:
        for pid in {pid for home in homes for pid in children(home)}:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
