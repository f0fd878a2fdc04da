"""``memorybus export``: a person's events, or a provider's memories of a person, as JSON lines."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
from memorybus import private
from memorybus.archive.tombstones import DamageHandler
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.events import Envelope
from memorybus.ids import new_mark
from memorybus.jobs.inspect import InstanceInspector, ReadKept
from memorybus.query.query import Query
from memorybus.recall.model import RecallRequest
from memorybus.registry.instances import live_name

from memorybus_console.operations import journal
from memorybus_console.operations.copies.generations import provider_of
from memorybus_console.operations.ingest.files import EventLines
from memorybus_console.operations.stores import checked_stores

MAX_NAMED = 1_000
"""How many events that cannot be written are named; further ones are only counted (G10)."""


class ExportResult(msgspec.Struct, kw_only=True):
    """What an export did; its ``--json``.

    Attributes:
        file: the file that was written; "" for standard output.
        provider: the provider whose memories were exported; "" for events.
        left_out: ids of events that a line cannot hold unchanged, with the reason: the first
            1,000 of them.
        unread: the parts of the history that could not be read, each with its reason.
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
        return not (self.left_out_events or self.unread)


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to export, and where to write it.

    Attributes:
        until: the time before which the events happened, milliseconds; None for all.
        provider: the instance whose memories are exported, or a provider, for its live instance;
            None for events.
    """

    query: Query
    since: int | None = None  # the earliest time of an event, milliseconds; None for the first
    until: int | None = None
    provider: str | None = None
    file: Path | None = None  # the file to write; None for standard output


def run_export(
    settings: Settings,
    asked: ExportRequest,
    pipe: Callable[[bytes], None],
    step: Callable[[], None],
) -> ExportResult:
    """Export a person's events, or a provider's memories, as JSON lines.

    Args:
        pipe: takes each line, with its end, if no file is asked for.

    Raises:
        ConfigError: the provider is unknown, or cannot list what it keeps.
        InspectionFailed: the provider's instance cannot be asked.
        OSError: the file cannot be written.
    """
    done = ExportResult(file=str(asked.file or ""), provider=asked.provider or "")
    if asked.provider is not None:
        lines = _read_memories(settings, asked.provider, asked.query, done, step)
    else:
        lines = _encode_events(_read_events(settings, asked, done.unread), done, step)
    if asked.file is not None:
        _write_atomically(asked.file, lines)
    else:
        for line in lines:
            pipe(line)
    return done


def _read_events(settings: Settings, asked: ExportRequest, unread: list[str]) -> Iterator[Envelope]:
    """Yield the events of the history that are asked for, in the order of the log.

    Volatile events (`TurnStarted`) are left out, as in the archive, and so are forgotten ones and
    the older forms of imported turns.
    Memory use does not grow with the history. `unread` gets a text for each part that cannot be
    read; the rest is read all the same.
    """
    history = journal.open_history(settings)
    with contextlib.closing(history):
        older = journal.older_forms(history, asked.query)
        for event in history.scan(
            asked.query, asked.since, asked.until, damage=DamageHandler(unread)
        ):
            if not (event.envelope.event.volatile or event.envelope.id in older):
                yield event.envelope


def _encode_events(
    envelopes: Iterable[Envelope], done: ExportResult, step: Callable[[], None]
) -> Iterator[bytes]:
    """Yield each event as a line with its end, and count it in `done`."""
    writer = EventLines()
    for envelope in envelopes:
        step()
        try:
            line = writer.encode(envelope)
        except ValueError as error:
            done.left_out_events += 1
            if len(done.left_out) < MAX_NAMED:
                done.left_out[envelope.id] = str(error)
            continue
        done.events += 1
        yield line + b"\n"


def _read_memories(
    settings: Settings, name: str, query: Query, done: ExportResult, step: Callable[[], None]
) -> Iterator[bytes]:
    """Yield the memories that a provider's instance keeps now, each as a line.

    The instance is asked page by page while its lanes run: a memory that is written or erased
    meanwhile may be missing, or occur twice. Pause the provider for an exact export.
    """
    with checked_stores(settings) as stores:
        view = stores.instances.read_view()
        provider = provider_of(name, view, settings.providers)
    instance = live_name(provider, view.live) if name == provider else name
    inspector = InstanceInspector(settings, SYSTEM)
    for owner in _each_owner(query):
        for memory in _read_kept(inspector, provider, instance, owner):
            step()
            done.memories += 1
            yield msgspec.json.encode(memory) + b"\n"


def _each_owner(query: Query) -> Iterator[RecallRequest]:
    """Yield all combinations of a query's people, agents and workspaces; None stands for any."""
    wanted = (names or (None,) for names in (query.users, query.agents, query.workspaces))
    for user, agent, workspace in product(*wanted):
        yield RecallRequest("", agent, user, workspace)


def _read_kept(
    inspector: InstanceInspector, provider: str, instance: str, owner: RecallRequest
) -> Iterator[dict[str, Any]]:
    skip, more = 0, True
    while more:
        page = inspector.ask(provider, instance, ReadKept(owner, skip))
        if not page.given:
            raise ConfigError(
                f"{instance} cannot list its memories; without --provider its events are exported"
            )
        yield from page.memories
        skip, more = skip + len(page.memories), page.more


def _write_atomically(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file completely or not at all, readable only for its user.

    An older file of that name stays until the new one is complete, even if this is interrupted.
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
