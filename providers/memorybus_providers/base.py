"""The contract of a memory provider: hooks, contexts, delivery classes.

A provider instance is long-lived and serves every session of its lanes. Hooks carry the names of
the Hermes ABC; each gets the event and an explicit context. A hook that is not overridden does
nothing. Write hooks are called from one thread at a time, unless `Capabilities.concurrent` allows
more; recall may run in another process on another instance.

Errors decide what happens next (see `memorybus.errors`): `Transient` is tried again,
`Unavailable` pauses the provider, `Permanent` and everything else parks the event's key.
"""

from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.events import (
    ContextCompressing,
    Delegated,
    Event,
    MemoryWritten,
    Position,
    Scope,
    SessionEnded,
    SessionRef,
    SessionStarted,
    SessionSwitched,
    StoreName,
    TurnCompleted,
    TurnStarted,
)
from memorybus.testing import CrashPoint, no_crash

from memorybus_providers import keeping, recollections, transactions
from memorybus_providers.errors import ProviderError

Fence = transactions.Fence
Progress = transactions.Progress
Transaction = transactions.Transaction
RecallContext = recollections.RecallContext
RecallScope = recollections.RecallScope
Recollection = recollections.Recollection
Why = recollections.Why
MemoryOwner = keeping.MemoryOwner
Residue = keeping.Residue
StoredMemory = keeping.StoredMemory

Delivery = Literal["transactional", "keyed", "lookup", "blind"]
"""How often an effect happens across crashes (G4).

``transactional``: checkpoint and ledger commit in the provider's own transaction: once.
``keyed``: the backend takes our event id as its key: once.
``lookup``: an event in doubt is asked for by id before it is sent again: once.
``blind``: at least once; at most one duplicate per crash, and one per call that was not answered.
"""

Placement = Literal["local", "shared"]
"""``local``: state on one host (files, SQLite). ``shared``: reachable from any worker."""


class Capabilities(msgspec.Struct, frozen=True):
    """What a provider can do; the contract suite and the workers read it.

    Attributes:
        recall: `prefetch` can return something.
        tools: `get_tool_schemas` is not empty.
        reading_tools: names of the tools that only read: they are run where recalls are, beside
            the lanes. Every other tool writes: its call is an event, applied in its lane.
        outside_tools: names of writing tools whose effect lies outside this instance's state (a
            message that is sent, an order placed): a replay does not repeat them.
        concurrent: write hooks may be called from several threads at once, for different keys;
            the calls of one key come one after another, in order (G3). Not for transactional ones.
        as_of: `prefetch` can say what was known at a time (`RecallContext.as_of`).
        retracts: `retract` forgets what came from an event.
        forgets: `forget` erases what is kept of a person or an agent.
        exports: `export` yields what is kept of a person or an agent.
        handles: the event types whose hooks do something; others are counted as applied
            without a call.
    """

    recall: bool = True
    tools: bool = False
    reading_tools: frozenset[str] = frozenset()
    outside_tools: frozenset[str] = frozenset()
    concurrent: bool = False
    as_of: bool = False
    retracts: bool = False
    forgets: bool = False
    exports: bool = False
    handles: frozenset[type[Event]] = frozenset()


Spend = Callable[[str, int], bool]
"""Counts one use of what costs: its sort, and how many there are a day (UTC) over all workers.

Returns whether there was one left. Raises `Unavailable` if that is not known now.
"""


class ProviderConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What an instance is made with.

    Attributes:
        name: the instance's name: its lanes, jobs and results are known by it.
        stands_for: the instance whose events it takes, if not its own: a replay fills a new one.
        answering: whether it serves agents; a copy that does not leaves outside effects alone.
        kept_elsewhere: stores that another provider keeps alone: who `mirrors` leaves them out.
        home: a directory of its own for local state; the provider creates what it needs in it.
        options: the instance's table in ``memorybus.toml``.
        clock: time, injected.
        crash: crash points, injected by fault tests.
        spend: counts what an instance that recalls spends, for all hosts; None where nobody does.
    """

    name: str
    home: Path
    options: Mapping[str, Any] = {}
    stands_for: str = ""
    answering: bool = True
    kept_elsewhere: frozenset[StoreName] = frozenset()
    clock: Clock = SYSTEM
    crash: CrashPoint = no_crash
    spend: Spend | None = None

    def __repr__(self) -> str:
        """Name the options without their values: credentials may be among them."""
        options = ", ".join(sorted(self.options))
        return f"ProviderConfig(name={self.name!r}, home={str(self.home)!r}, options: {options})"


class HookContext(msgspec.Struct, frozen=True):
    """What every write hook is told beside the event.

    Attributes:
        scope: who it belongs to.
        session: the session and its place in the lineage.
        event_id: the envelope's id; the idempotency key for backends that take one.
        position: where in the log the event stands.
        at: wall time of the event, milliseconds.
        deadline: seconds this call may take before it is abandoned.
    """

    scope: Scope
    session: SessionRef
    event_id: str
    position: Position
    at: int
    deadline: float


class TurnCall(NamedTuple):
    """A turn on its way into a provider: what `sync_turn` would be called with."""

    event: TurnCompleted
    ctx: HookContext


class MemoryProvider(ABC):
    """A memory backend behind the bus. Override what the backend has a use for."""

    kind: ClassVar[str]
    delivery: ClassVar[Delivery] = "blind"
    placement: ClassVar[Placement] = "shared"
    capabilities: ClassVar[Capabilities] = Capabilities()
    fresh_options: ClassVar[tuple[str, ...]] = ()
    """Of a shared one: the options that name where its state is. A copy needs another value."""
    tunable: ClassVar[frozenset[str]] = frozenset()
    """The options that a copy's record in Redis may set (``--set``): whoever can write there.

    Numbers, and names within the backend that the settings name: never a path, an address, code, a
    command, a variable's name, or who sees whose memories. All else comes from the worker's own
    settings: a copy's from the table ``[provider."COPY"]``.
    """
    bulk_turns: ClassVar[int] = 100
    """How many turns `sync_turns` takes at once, at most."""
    mirrors: ClassVar[bool] = False
    """Whether it keeps a copy of what the agent writes to its own files (`builtin`)."""
    time_limits: Mapping[type[Event], float] = MappingProxyType({})
    """Seconds that the hook of an event may take, by type, where that is not ``call_timeout``.

    The lease of its lane is held so long, and the other events of the instance wait.
    """
    note: str = ""
    """What people should know of an instance: ``provider ls`` and ``doctor`` show it."""

    def __init__(self, config: ProviderConfig) -> None:
        """Keep the configuration; do no I/O before `open`."""
        self.config = config

    # -- life ---------------------------------------------------------------------------------

    @classmethod
    def is_available(cls, config: ProviderConfig) -> bool:
        """Say without network access whether an instance could be opened."""
        return True

    def open(self) -> None:
        """Open connections and files. Called once, from the thread that will call the hooks."""

    def shutdown(self) -> None:
        """Release everything. May never come; must be safe to call twice."""

    def report(self) -> str:
        """Say in one line what an operator should know of the open instance now; "" for nothing.

        Workers ask it about once a second, from another thread than the one that calls the hooks,
        and tell it with their heartbeat: it must answer at once, from memory.
        """
        return ""

    def health(self, deadline: float) -> str:
        """Say why the open instance could not serve now, and what to do; "" if it is well.

        Unlike `report` it may ask the backend, without changing anything there. ``memorybus
        doctor`` asks for it, where recalls are.

        Args:
            deadline: seconds for the answer.

        Raises:
            ProviderError: as any hook; the message is what is shown.
        """
        return ""

    def backup_paths(self) -> Sequence[Path]:
        """Return the files and directories that hold this instance's state."""
        return ()

    @property
    def fresh_by_home(self) -> bool:
        """Whether a copy with a home of its own has a state of its own."""
        return self.placement == "local"

    def digest(self, after: str = "") -> Iterator[tuple[str, str]] | None:
        """Return what stands for the state, as pairs of key and digest in the order of keys (G8).

        Of a provider whose state is a function of events: two instances to which the same events
        were applied give the same pairs, however the events of different keys were mixed. A key is
        what a person understands (see `digests.key_of`). All that recalls depend on is in it;
        row numbers, times of application, epochs and the ledger are not.

        Args:
            after: only keys above this one, so that a long list can be asked for in parts.

        Returns:
            None if nothing can be said: memories that a model derives are never the same twice.
        """
        return None

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]] | None:
        """Describe the options: dicts with ``key``, ``description``, ``default``, ``required``.

        Also, for who is asked for them: ``choices`` (the values there are), ``hint`` (an example,
        or where to find the value), ``type`` (text, number, flag or list; the default's if none)
        and ``secret``: the option names the environment variable that holds a secret.

        Returns:
            Empty if there are none: each that is given is an error. None if any may be given.
        """
        return None

    def save_config(self, values: Mapping[str, Any]) -> None:
        """Keep options given by a set-up dialogue in the instance's home, if it keeps any."""

    # -- write hooks --------------------------------------------------------------------------

    def initialize(self, event: SessionStarted, ctx: HookContext) -> None:
        """A session began."""

    def on_turn_start(self, event: TurnStarted, ctx: HookContext) -> None:
        """The user has spoken."""

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Remember a completed turn."""

    def sync_turns(self, turns: Sequence[TurnCall]) -> Mapping[str, ProviderError]:
        """Remember several completed turns in one call to the backend.

        Override it beside `sync_turn` if the backend has a bulk call: the host then calls it with
        what is due of a lane, at most `bulk_turns`. A turn in doubt, one that is tried again and a
        dead letter come by `sync_turn`. Turns stand in the order of the log, several of one session
        among them; each context's deadline is that of the whole call. Not called of
        ``transactional`` providers, whose transaction is the batch.

        Where one turn fails, nothing of the same session behind it may have been remembered (G3):
        the host sends these again after it, whatever is answered of them.

        Returns:
            What failed, by event id, with what `sync_turn` would have raised; empty if all is
            remembered. What is not named counts as remembered.

        Raises:
            ProviderError: nothing can be said of any: each turn then counts as having failed so,
                and as in doubt after `Transient` and `Unavailable` (G4). The host tries them alone.
        """
        for turn in turns:
            self.sync_turn(*turn)
        return {}

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Mirror a write to the agent's memory or user store."""

    def on_session_switch(self, event: SessionSwitched, ctx: HookContext) -> None:
        """The conversation goes on in ``ctx.session``."""

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Forget what came from some events, which were taken back: a turn that was undone.

        Called like a write hook (G4), for a `SessionSwitched` that names events. They stood before
        it under the same order key, so that they are applied already, were parked and discarded, or
        never reached this provider: an id that is not known changes nothing. A publisher names the
        ids: forget only what belongs to ``ctx.scope`` and to the lineage of ``ctx.session``. What
        an event that stays has said, too, stays.
        """

    def on_pre_compress(self, event: ContextCompressing, ctx: HookContext) -> str:
        """Save what is about to leave the window; return text worth keeping in the summary."""
        return ""

    def on_delegation(self, event: Delegated, ctx: HookContext) -> None:
        """Remember what a sub-agent did."""

    def on_session_end(self, event: SessionEnded, ctx: HookContext) -> None:
        """A session is over."""

    def knows(self, event_id: str, ctx: HookContext) -> bool:
        """Say whether the backend holds an event already (delivery ``lookup``, G4).

        Asked for an event that was sent and not answered, before it is sent again: a crash, an
        error or a time-out leaves open whether it is held.
        """
        raise NotImplementedError(f"{self.kind} is of delivery `lookup` and must define knows()")

    # -- what is kept of somebody -------------------------------------------------------------

    def forget(self, scope: RecallScope) -> Residue:
        """Erase all that is kept of a scope, from the backend and from what lies beside it.

        An operator asks for it (``memorybus forget``), once every lane has applied or left out what
        the log had of the scope. A part of the scope that is None stands for everyone's: a person's
        memories with every agent are ``RecallScope(None, "ada", None)``; at least one part is
        given. What belongs to a scope is what events of it brought, whoever is shown it. It goes
        for good: out of indexes, vectors, histories, queues, caches and free pages of files, too.

        Called on an instance that recalls, perhaps in another process than the lanes': they go on
        meanwhile, and what another instance holds in memory must not bring anything back. It may
        come twice: a scope of which nothing is kept is no error.

        Returns:
            What is left in spite of it: say so rather than raise, once something was erased.

        Raises:
            Transient, Unavailable: it may be asked again, from the beginning.
        """
        raise NotImplementedError(f"{self.kind} declares `forgets` and must define forget()")

    def export(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield all that is kept of a scope, in an order that stays the same.

        The scope is read as by `forget`: what the one erases the other yields, also what recalls
        no longer show. Memory stays flat: page through the backend.
        """
        raise NotImplementedError(f"{self.kind} declares `exports` and must define export()")

    def owners(self, after: tuple[str, str, str] | None = None) -> Iterator[MemoryOwner] | None:
        """Yield whose memories are kept, in the order of agent, person and workspace.

        For an operator who looks for somebody. It is asked for by pages: the first ones must come
        at once, however many there are.

        Args:
            after: only owners above this agent, person and workspace.

        Returns:
            None if the backend cannot tell without reading all that it keeps.
        """
        return None

    # -- tools and recall ---------------------------------------------------------------------

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Return what is remembered for a query, best first, nothing outside ``ctx.scope``."""
        return ()

    def system_prompt_block(self, scope: RecallScope) -> str:
        """Return a text for the system prompt of one agent and person, the same from turn to turn.

        Nothing outside `scope` may be in it. Asked where recalls are, and ahead of the session that
        shows it; the agent gets it as data, escaped and within a fence, and only its beginning if
        it is long (the setting `prompt_budget`).
        """
        return ""

    def get_tool_schemas(self) -> Sequence[Mapping[str, Any]]:
        """Return OpenAI function schemas of this provider's tools. Works before `open`."""
        return ()

    def handle_tool_call(
        self, tool: str, arguments: Mapping[str, Any], ctx: HookContext
    ) -> Mapping[str, Any]:
        """Run a tool and return a JSON-able result.

        A writing tool runs in its lane, as every write hook does, and may come again after a
        crash (G4: ``ctx.event_id`` tells). One of `Capabilities.reading_tools` runs on an instance
        that recalls, perhaps in another process: its ``ctx.position`` is nowhere in the log.
        """
        raise NotImplementedError(f"{self.kind} has no tool {tool!r}")


class TransactionalProvider(MemoryProvider):
    """A provider that commits its effects, a ledger of event ids and the checkpoint as one (G4)."""

    delivery: ClassVar[Delivery] = "transactional"

    def progress(self, lane: str) -> Progress | None:
        """Return the lane's committed progress, or None if the store has never seen it."""
        raise NotImplementedError

    def transaction(self, fence: Fence) -> AbstractContextManager[Transaction]:
        """Open a transaction, refused with `StaleEpoch` if the store knows a newer epoch (G5).

        Hooks called inside take part in it. Leaving normally commits, an exception rolls back.
        """
        raise NotImplementedError
