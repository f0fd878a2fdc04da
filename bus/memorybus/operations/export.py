"""``memorybus export``: a person's events, or what a provider keeps of a person, as JSON lines."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from memorybus import private
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.events import Envelope
from memorybus.ids import new_mark
from memorybus.jobs.inspect import InstanceInspector
from memorybus.operations import journal
from memorybus.operations.copies.generations import provider_of
from memorybus.operations.ingest.event_lines import EventLines
from memorybus.operations.stores import Stores
from memorybus.query.query import Query
from memorybus.recall.model import RecallRequest
from memorybus.registry.instances import live_name

NAMED = 1_000
"""Events that cannot be written and are named each; later ones are only counted (G10)."""


class Exported(msgspec.Struct, kw_only=True):
    """What an export did; its ``--json``.

    Attributes:
        file: where it is; "" for standard output.
        provider: whose memories were asked for; "" for events.
        events: events written.
        memories: memories of a provider written.
        left_out: ids of events that a line cannot hold unchanged, and why: the first `NAMED`.
        left_out_events: how many there are.
        unread: what of the past could not be read, each part with its reason.
    """

    file: str = ""
    provider: str = ""
    events: int = 0
    memories: int = 0
    left_out: dict[str, str] = {}
    left_out_events: int = 0
    unread: list[str] = []

    @property
    def whole(self) -> bool:
        """Whether nothing is missing."""
        return not (self.left_out_events or self.unread)


def events(
    settings: Settings, query: Query, since: int | None, until: int | None, unread: list[str]
) -> Iterator[Envelope]:
    """Yield what the history has of a query, in the order in which the log took it.

    Volatile events (`TurnStarted`) are left out, as the archive leaves them out. What is forgotten
    is not read. Memory does not grow with the history.

    Args:
        settings: which log.
        query: whose events.
        since: the earliest time of an event, milliseconds.
        until: the time before which events are wanted, milliseconds.
        unread: what cannot be read is told here, and the rest is read.

    Raises:
        LogError: Redis is away, or the log cannot be used as it is.
    """
    history = journal.checked_history(settings)
    with contextlib.closing(history):
        for event in history.scan(query, since, until, damage=unread):
            if not event.envelope.event.volatile:
                yield event.envelope


def lines(
    envelopes: Iterable[Envelope], done: Exported, step: Callable[[], None]
) -> Iterator[bytes]:
    """Yield each event's line with its end, and note in `done` what came of it."""
    writer = EventLines()
    for envelope in envelopes:
        step()
        try:
            line = writer.line(envelope)
        except ValueError as error:
            done.left_out_events += 1
            if len(done.left_out) < NAMED:
                done.left_out[envelope.id] = str(error)
            continue
        done.events += 1
        yield line + b"\n"


def memories(
    settings: Settings, name: str, query: Query, done: Exported, step: Callable[[], None]
) -> Iterator[bytes]:
    """Yield what an instance of a provider keeps, a line each, as the instance has it now.

    It is asked page by page while its lanes go on: what is written or erased meanwhile may be
    missing or there twice; pause the provider for an exact picture.

    Args:
        settings: which log.
        name: a provider, of which the one that serves is asked, or an instance.
        query: whose: its people, agents and workspaces; everyone's where it names none.
        done: counts them.
        step: called for each.

    Raises:
        ConfigError: nobody knows the name, or the provider cannot say what it keeps.
        InspectionFailed: it cannot be asked.
    """
    with Stores(settings) as stores:
        stores.check()
        sight = stores.instances.look()
        provider = provider_of(name, sight, settings.providers)
    instance = live_name(provider, sight.live) if name == provider else name
    inspector = InstanceInspector(settings, SYSTEM)
    for whose in _everybody(query):
        for memory in _kept(inspector, provider, instance, whose):
            step()
            done.memories += 1
            yield msgspec.json.encode(memory) + b"\n"


def _everybody(query: Query) -> Iterator[RecallRequest]:
    """Yield each person with each agent in each workspace; None where a query names none."""
    for user in query.users or (None,):
        for agent in query.agents or (None,):
            for workspace in query.workspaces or (None,):
                yield RecallRequest(query="", agent=agent, user=user, workspace=workspace)


def _kept(
    inspector: InstanceInspector, provider: str, instance: str, whose: RecallRequest
) -> Iterator[dict[str, Any]]:
    skip, more = 0, True
    while more:
        page = inspector.read_kept(provider, instance, whose, skip)
        if not page.given:
            raise ConfigError(
                f"{instance} cannot say what it keeps; without --provider its events are exported"
            )
        yield from page.memories
        skip, more = skip + len(page.memories), page.more


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file that is there whole or not at all, and that only its user can read.

    What was there under its name stays until then, also if this is interrupted.

    Raises:
        OSError: it cannot be written.
    """
    fresh = path.with_name(f".{path.name}.{new_mark()}")
    try:
        with open(fresh, "xb", opener=private.opener) as out:
            out.writelines(parts)
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
