"""Corrects or deletes one memory by publishing an event, so that a rebuild repeats it.

Which event is published depends on the event that brought the memory:

================  ============================  ==================================================
brought by        deleted by                    corrected by
================  ============================  ==================================================
a memory write    `MemoryWritten` remove        `MemoryWritten` replace
anything else     a rewind that names the       `ToolCalled` ``memory_correct`` at each provider
                  event: every provider drops   that has the tool: the right text then ranks first,
                  all that the event brought    and the wrong one says until when it held
================  ============================  ==================================================

The new event has the order key, the scope and the session of the old one. So every provider applies
it after the old one, in a replay too (G3).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import Final, Literal

import msgspec
from memorybus.agent.client import MemoryBus
from memorybus.agent.session_events import memory_write
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, MissingEvent
from memorybus.events import (
    AnyEvent,
    Envelope,
    MemoryWritten,
    Omitted,
    Scope,
    SessionRef,
    SessionSwitched,
    StoreName,
    ToolCalled,
    WriteAction,
)
from memorybus.history.history import History
from memorybus.ids import text_digest
from memorybus.jobs.inspect import InspectionFailed
from memorybus.log.entry import LoggedEvent, parse_entry_id
from memorybus.query.query import ORIGIN, Query
from memorybus.query.ranges import Plan
from memorybus.recall.model import RecallRequest, written_partitions
from memorybus.recall.retractions import purge_answers, purge_sessions
from memorybus.redis.keys import store_key
from memorybus.registry.roster import ProviderInfo
from memorybus.registry.tools import DeclaredTools
from memorybus.text.cleaning import clean_text

from memorybus_console.operations import journal
from memorybus_console.operations.memories.browsing import KeptMemory, list_memories, list_providers
from memorybus_console.operations.moments import await_lanes
from memorybus_console.operations.settings import scope_of
from memorybus_console.operations.stores import Stores
from memorybus_console.result import Remark, Result

MemoryAction = Literal["correct", "delete"]

TOOL: Final = "memory_correct"  # the tool that corrects a fact, as the providers of facts call it

_MAX_TEXT_CHARS = 10_000  # how many characters a corrected text may have

_MAX_OLD_CHARS = 2_000
"""The most characters of a memory that has no name, so that the tool finds it by its text."""

_STORES: Final[Mapping[str, StoreName]] = {"memory": "memory", "user": "user", "user-store": "user"}
"""The memory store of each kind of memory that is an entry of a store, by the kind's name."""

_PAGE = 2_000  # how many memories are requested at once

_ARRIVAL_MS = 5_000
"""Most events enter the log within so many milliseconds of their time; the search begins there."""

_SKEW_MS = 1_000  # how far a producer's clock may be ahead in that search, milliseconds


class CannotAmend(ConfigError):
    """A memory that no event can correct or delete; the message says why, and what to do."""


class DraftEvent(msgspec.Struct, frozen=True):
    """An event that is to be published."""

    event: AnyEvent
    key: str
    scope: Scope
    session: SessionRef


class MemoryAmendment(msgspec.Struct, frozen=True):
    """A planned correction or deletion of a memory."""

    action: MemoryAction
    memory: KeptMemory
    content: str  # the right text; "" if it is deleted
    brought: Envelope | None  # the event that brought it; None if it is unknown
    drafts: tuple[DraftEvent, ...]
    effects: dict[str, str]
    stays: tuple[str, ...]


class AmendmentResult(Result, frozen=True):
    """What was done to a memory.

    Attributes:
        logged: whether the log has them; if not, they are spooled on this host.
        behind: instances that have not applied them yet, with how many events they lack.
    """

    events: tuple[str, ...]
    logged: bool
    behind: dict[str, int]
    action: MemoryAction
    executed: bool = True

    def headline(self) -> str:
        done = "corrected" if self.action == "correct" else "deleted"
        spooled = "; Redis has not taken it yet: it is spooled on this host, and will be sent"
        where = "" if self.logged else spooled
        return f"the memory is {done}; published: {', '.join(self.events)}{where}"

    def notes(self) -> Iterator[Remark]:
        for instance, missing in self.behind.items():
            yield Remark(f"{instance} has not applied it yet: it lacks {missing} events", "yellow")

    def failed(self) -> bool:
        return bool(self.behind) or not self.logged


# -- which memory ------------------------------------------------------------------------------


def is_amendable(memory: KeptMemory) -> bool:
    """Whether an event could correct or delete a memory, as far as the memory shows; pure."""
    return not memory.former and (bool(memory.event) or memory.kind in _STORES)


def find_memory(
    settings: Settings, provider: str, owner: RecallRequest, event: str, mark: str
) -> KeptMemory:
    """Return a memory that a provider keeps of somebody, by its event and its exact text.

    Args:
        event: the event that brought it; "" if it is unknown.
        mark: the digest of its text (`ids.text_digest`).

    Raises:
        MissingEvent: the provider no longer keeps such a memory.
        ConfigError, InspectionFailed, LogError: see `browsing.list_memories`.
    """
    skip, more = 0, True
    while more:
        page = list_memories(settings, provider, owner, skip=skip, containing=event, most=_PAGE)
        for memory in page.memories:
            if memory.event == event and text_digest(memory.text) == mark:
                return memory
        skip, more = skip + len(page.memories), page.more
    raise MissingEvent(f"{provider} has that memory no more; list its memories again")


def find_memory_of_event(
    settings: Settings, provider: str, action: MemoryAction, event: str, text: str = ""
) -> KeptMemory:
    """Return the memory that an event brought to a provider; of several, the one with a text.

    A deletion may name any of them, unless the event is a memory write, because it deletes all that
    the event brought.

    Raises:
        CannotAmend: it brought none there, or several, and the text does not say which.
        MissingEvent, ConfigError, InspectionFailed, LogError: see `find_memory`.
    """
    brought = find_event(settings, event)
    scope = brought.scope
    owner = RecallRequest(query="", agent=scope.agent, user=scope.user, workspace=scope.workspace)
    page = list_memories(settings, provider, owner, containing=event, most=_PAGE)
    here = [memory for memory in page.memories if memory.event == event and text in memory.text]
    goes_whole = action == "delete" and not isinstance(brought.event, MemoryWritten)
    if len(here) == 1 or (here and goes_whole):
        return here[0]
    if not here:
        others = [name for name in find_keepers(settings, owner, event) if name != provider]
        elsewhere = f", but {', '.join(others)} may" if others else ""
        advice = f"give --provider {others[0]}" if others else "see: memorybus memories list"
        raise CannotAmend(
            f"{provider} keeps no memory of event {event} with that text{elsewhere}; {advice}"
        )
    raise CannotAmend(
        f"{provider} keeps {len(here)} memories of event {event}: name one by a part of its text"
    )


def find_keepers(settings: Settings, owner: RecallRequest, event: str) -> list[str]:
    """Return the providers that keep a memory of an event; those that cannot say are left out."""
    keepers = []
    for keeper in list_providers(settings):
        if keeper.exports and keeper.served:
            with suppress(InspectionFailed):
                page = list_memories(settings, keeper.provider, owner, containing=event, most=1)
                keepers += [keeper.provider] if page.memories else []
    return keepers


def find_event(settings: Settings, event: str, memory: KeptMemory | None = None) -> Envelope:
    """Return an event by its id.

    Args:
        memory: a memory that it brought: most events are found quickly near the memory's time.

    Raises:
        MissingEvent: the history has no such event.
    """
    with closing(journal.open_history(settings)) as history:
        near = None if memory is None else _search_nearby(history, event, memory)
        return (near or journal.event_by_id(history, event)).envelope


def find_event_nearby(settings: Settings, memory: KeptMemory) -> LoggedEvent | None:
    """Return the event that brought a memory, if it is found near the time of the memory."""
    with closing(journal.open_history(settings)) as history:
        return _search_nearby(history, memory.event, memory)


def _search_nearby(history: History, event: str, memory: KeptMemory) -> LoggedEvent | None:
    """Return an event that entered the log within seconds of its time, in its likely partition.

    Return None if it did not, because it was recorded elsewhere before, or because its session
    continues another one.
    """
    scope = Scope(agent=memory.agent, user=memory.user, workspace=memory.workspace)
    session = SessionRef(memory.session, memory.session)
    plan = Plan(query=Query(ids=(event,)))
    for partition in written_partitions(scope, session, history.log.partitions):
        after, n = f"{max(0, memory.at - _SKEW_MS)}-0", 0
        while page := history.read(partition, after, after_n=n, plan=plan).events:
            for logged in page:
                if logged.envelope.id == event and not isinstance(logged.envelope.event, Omitted):
                    return logged
            after, n = page[-1].position.entry, page[-1].position.n
            if parse_entry_id(after)[0] > memory.at + _ARRIVAL_MS:
                break
    return None


# -- what would be done ------------------------------------------------------------------------


def plan_amendment(
    settings: Settings, action: MemoryAction, memory: KeptMemory, content: str = ""
) -> MemoryAmendment:
    """Return what would be done to a memory; nothing is changed.

    Raises:
        CannotAmend: no event can do that.
        MissingEvent: its event is no longer in the history.
    """
    brought = find_event(settings, memory.event, memory) if memory.event else None
    own = scope_of(settings)
    with Stores(settings) as stores:
        providers, tools = stores.roster.providers(), stores.roster.tools()
    correcting = [name for name, declared in tools.items() if has_correction_tool(declared)]
    drafts = draft_events(action, memory, content, brought, own, correcting)
    is_entry = isinstance(drafts[0].event, MemoryWritten)
    effects = {
        name: _describe_effect(action, name, provider, correcting, is_entry)
        for name, provider in providers.items()
    }
    return MemoryAmendment(
        action, memory, content, brought, drafts, effects, _describe_remains(is_entry)
    )


def has_correction_tool(declared: DeclaredTools) -> bool:
    """Return whether a provider declares the tool that corrects memories; pure."""
    named = (schema.get("name") for schema in declared.schemas if isinstance(schema, Mapping))
    return TOOL in named and TOOL not in declared.reading


def draft_events(
    action: MemoryAction,
    memory: KeptMemory,
    content: str,
    brought: Envelope | None,
    own: Scope,
    correcting: Sequence[str],
) -> tuple[DraftEvent, ...]:
    """Return the events that correct a memory, or delete it; pure.

    Args:
        own: the settings' scope, for an entry whose event and owner are unknown.
        correcting: the providers that have the tool `TOOL`.

    Raises:
        CannotAmend: no event can do that.
    """
    _check_amendable(action, memory, content)
    right = clean_text(content).strip()
    store = _store_of_entry(memory, brought)
    if store is not None:
        return (_draft_write(action, memory, right, store, brought, own),)
    if brought is None:
        raise CannotAmend(
            "its provider does not know which event brought it, so that no event can change it; "
            "`memorybus forget` erases all of a person"
        )
    if action == "delete":
        return (_draft_retraction(brought),)
    if not correcting:
        raise CannotAmend(
            f"no provider has the tool {TOOL}, which corrects a statement: take it back, and "
            "publish what is right"
        )
    events = (_correction_call(name, memory, right) for name in correcting)
    return tuple(DraftEvent(event, brought.key, brought.scope, brought.session) for event in events)


def _check_amendable(action: MemoryAction, memory: KeptMemory, content: str) -> None:
    if action == "correct" and not 0 < len(content.strip()) <= _MAX_TEXT_CHARS:
        raise CannotAmend(f"give the right text, in 1 to {_MAX_TEXT_CHARS} characters")
    if memory.former:
        raise CannotAmend(
            "it is the text of an entry before its correction; only `memorybus forget` erases that"
        )


def _store_of_entry(memory: KeptMemory, brought: Envelope | None) -> StoreName | None:
    if brought is None:
        return _STORES.get(memory.kind)
    return brought.event.store if isinstance(brought.event, MemoryWritten) else None


def _draft_write(
    action: MemoryAction,
    memory: KeptMemory,
    right: str,
    store: StoreName,
    brought: Envelope | None,
    own: Scope,
) -> DraftEvent:
    provenance = {ORIGIN: "operator"}
    change: WriteAction = "remove" if action == "delete" else "replace"
    event = memory_write(change, store, right, memory.text, provenance)
    if brought is not None:
        return DraftEvent(event, store_key(store, brought.scope), brought.scope, brought.session)
    scope = Scope(
        agent=memory.agent or own.agent,
        user=memory.user or own.user,
        workspace=memory.workspace,
    )
    session = SessionRef(memory.session or "operators", memory.session or "operators")
    return DraftEvent(event, store_key(store, scope), scope, session)


def _draft_retraction(brought: Envelope) -> DraftEvent:
    session = brought.session
    event = SessionSwitched(
        new_id=session.id, reason="rewind", rewound=True, retracted=(brought.id,)
    )
    return DraftEvent(event, brought.key, brought.scope, session)


def _correction_call(provider: str, memory: KeptMemory, right: str) -> ToolCalled:
    if not memory.name and len(memory.text) > _MAX_OLD_CHARS:
        raise CannotAmend("it is too long to be corrected by its text: delete it")
    old = {"fact_id": memory.name} if memory.name else {"old_text": memory.text}
    return ToolCalled(provider=provider, tool=TOOL, arguments={"content": right, **old})


def _describe_effect(
    action: MemoryAction, name: str, info: ProviderInfo, correcting: Collection[str], is_entry: bool
) -> str:
    if is_entry:
        return "removes the entry" if action == "delete" else "replaces the entry"
    if action == "correct":
        return "corrects it" if name in correcting else "keeps it: it has no correction"
    return "forgets all that the event brought" if info.retracts else "may keep it"


def _describe_remains(is_entry: bool) -> tuple[str, ...]:
    """Return, in words, what the events do not reach."""
    if is_entry:
        return (
            "an agent's own memory file, if it has one, where it may read it and write it again",
            "the event that brought it, in log and archive",
            "what providers keep of what was so before, which is not recalled by itself",
        )
    return ("the event that brought it, in log and archive: memorybus forget erases a person's",)


# -- doing it ----------------------------------------------------------------------------------


def carry_out(
    settings: Settings, plan: MemoryAmendment, *, wait: float = 5.0, clock: Clock = SYSTEM
) -> AmendmentResult:
    """Publish the events of a plan, and wait until providers have applied them.

    Warm results for the memory's person are removed, so that providers are asked again; for a
    memory of the agent, those of all persons.

    Args:
        wait: seconds to wait for the lanes.

    Raises:
        SpoolFull, SpoolError: nothing was published.
    """
    with MemoryBus.connect(settings) as bus:
        ids = [
            bus.publish(
                draft.event, key=draft.key, scope=draft.scope, session=draft.session, durable=True
            ).event_id
            for draft in plan.drafts
        ]
        logged = bus.flush("logged", max(wait, 1.0))
    behind = _await_served(settings, wait, clock) if logged else {}
    sessions = {(draft.scope, draft.session) for draft in plan.drafts}
    purge_sessions(settings, sessions, plan.effects)
    if _is_shared(plan):
        purge_answers(settings, plan.effects)
    return AmendmentResult(tuple(ids), logged, behind, plan.action)


def _is_shared(plan: MemoryAmendment) -> bool:
    """Return whether other persons may be answered with the memory: it is the agent's."""
    writes = [draft.event for draft in plan.drafts if isinstance(draft.event, MemoryWritten)]
    return not plan.memory.user or any(event.store == "memory" for event in writes)


def _await_served(settings: Settings, wait: float, clock: Clock) -> dict[str, int]:
    """Wait for the instances that serve; return those that lag, with what they lack."""
    with Stores(settings) as stores:
        return await_lanes(stores, stores.roster.served_providers(), wait, clock)
