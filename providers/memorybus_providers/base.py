"""The contract of a memory provider: hooks, contexts, delivery classes.

A provider instance is long-lived and serves every session of its lanes. Hooks carry the names of
the Hermes ABC; each gets the event and an explicit context. A hook that is not overridden does
nothing. Write hooks are called from one thread at a time, unless `Capabilities.concurrent` allows
more; recall may run in another process on another instance.

Errors decide what happens next (see `memorybus.errors`): `Transient` is tried again,
`Unavailable` pauses the provider, `Permanent` and everything else parks the event's key.

All types of the contract are imported from here, wherever they are defined.
"""

from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, tzinfo
from pathlib import Path
from types import MappingProxyType
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    Self,
)

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.errors import LeaseLost
from memorybus.events import (
    ContextCompressing,
    Delegated,
    Derived,
    Event,
    MemoryCurated,
    MemoryState,
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

from memorybus_providers.errors import ProviderError

__all__ = [
    "Capabilities",
    "Delivery",
    "Fence",
    "HookContext",
    "MemoryOwner",
    "MemoryProvider",
    "Placement",
    "Progress",
    "ProviderConfig",
    "RecallContext",
    "RecallScope",
    "Recollection",
    "Residue",
    "Spend",
    "StoredMemory",
    "Transaction",
    "TransactionalProvider",
    "TurnCall",
    "Why",
]

Delivery = Literal["transactional", "keyed", "lookup", "blind"]
"""How often an effect happens across crashes (G4).

``transactional``: once; checkpoint and ledger commit in the provider's own transaction.
``keyed``: once; the backend takes our event id as its key.
``lookup``: once; an event in doubt is looked up by its id before it is sent again.
``blind``: at least once; at most one duplicate per crash, and one per call that was not answered.
"""

Placement = Literal["local", "shared"]
"""``local``: state on one host (files, SQLite). ``shared``: reachable from any worker."""


class Capabilities(msgspec.Struct, frozen=True):
    """What a provider can do; the contract suite and the workers read it.

    Attributes:
        recall: `prefetch` can return something.
        tools: `get_tool_schemas` is not empty.
        reading_tools: names of the tools that only read: they run where recalls run, beside the
            lanes. Every other tool writes: its call is an event that is applied in its lane.
        outside_tools: names of writing tools whose effect lies outside this instance's state (a
            message that is sent, an order placed): a replay does not repeat them.
        concurrent: write hooks may be called from several threads at once, for different keys;
            the calls of one key come one after another, in order (G3). Not for transactional ones.
        as_of: `prefetch` can say what was known at a time (`RecallContext.as_of`).
        retracts: `retract` forgets what came from an event.
        forgets: `forget` erases what is kept of a person or an agent.
        exports: `export` yields what is kept of a person or an agent.
        curates: `curated` yields memories with their states, and `on_memory_curated` changes these.
        forgetting_tools: names of writing tools that take a memory back: warm answers go first.
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
    curates: bool = False
    forgetting_tools: frozenset[str] = frozenset()
    handles: frozenset[type[Event]] = frozenset()


Spend = Callable[[str, int], bool]
"""Counts one use of something that costs.

It takes the sort of use, and how many of that sort are allowed a day (UTC) over all workers. It
returns whether one was left, and raises `Unavailable` if that cannot be known now.
"""


class ProviderConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of an instance.

    Attributes:
        name: the instance's name, which its lanes, jobs and results carry.
        stands_for: the instance whose events it takes, if not its own: a replay fills a new one.
        answering: whether it serves agents; a copy that does not must cause no outside effects.
        kept_elsewhere: stores that another provider keeps alone; a provider that `mirrors` leaves
            them out.
        home: a directory of its own for local state; the provider creates what it needs in it.
        options: the instance's table in ``memorybus.toml``.
        models: the directory of this host's models; None if there is none.
        clock: time, injected.
        crash: crash points, injected by fault tests.
        spend: counts, over all hosts, what a recalling instance spends; None if nothing counts it.
        zone: the time zone in which days begin.
        derive_every_turns: after how many turns a session is due to be derived; 0 if this instance
            notes no such sessions.
        derivers: the names of the derivers that a session is due for.
    """

    name: str
    home: Path
    options: Mapping[str, Any] = {}
    models: Path | None = None
    stands_for: str = ""
    answering: bool = True
    kept_elsewhere: frozenset[StoreName] = frozenset()
    clock: Clock = SYSTEM
    crash: CrashPoint = no_crash
    spend: Spend | None = None
    zone: tzinfo = UTC
    derive_every_turns: int = 0
    derivers: tuple[str, ...] = ("extractive",)

    def __repr__(self) -> str:
        """Name the options without their values: credentials may be among them."""
        options = ", ".join(sorted(self.options))
        return f"ProviderConfig(name={self.name!r}, home={str(self.home)!r}, options: {options})"


class HookContext(msgspec.Struct, frozen=True):
    """What every write hook gets beside the event.

    Attributes:
        scope: the owner of the event.
        session: the session and its place in the lineage.
        event_id: the envelope's id; the idempotency key for backends that take one.
        position: the event's position in the log.
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
    """A turn on its way into a provider: the arguments of `sync_turn`."""

    event: TurnCompleted
    ctx: HookContext


class RecallScope(msgspec.Struct, frozen=True):
    """The owners whose memories may be recalled. None means everyone; only operators may ask that.

    The empty workspace is a workspace like any other: that of sessions which name none.
    """

    agent: str | None = "default"
    user: str | None = "default"
    workspace: str | None = ""

    @classmethod
    def own(cls, scope: Scope) -> Self:
        """Return what a session of a scope may recall: exactly its own."""
        return cls(scope.agent, scope.user, scope.workspace)


class RecallContext(msgspec.Struct, frozen=True):
    """What a recall gets beside the query.

    Attributes:
        scope: whose memories may be returned; nothing outside it.
        session: the asking session, or None.
        budget: characters of text that are wanted at most; the caller cuts the rest.
        deadline: seconds until the answer is of no use any more.
        explain: whether the answer shall say why each memory was found (`Recollection.why`).
        as_of: recall what was known at this time, milliseconds; None for now. What was said or
            corrected later does not count. Only set for providers with `Capabilities.as_of`.
    """

    scope: RecallScope
    session: SessionRef | None = None
    budget: int = 2_000
    deadline: float = 5.0
    explain: bool = False
    as_of: int | None = None


class Why(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a memory was found, for a person who asks.

    Attributes:
        words: the words that memory and question share, as the memory spells them.
        meaning: how near its meaning is to that of the question, -1 to 1; None if the provider
            compared words alone.
        parts: the amounts and factors of its score, in the order in which a person reads them, by
            names that explain themselves ("speaker", "newer").
    """

    words: tuple[str, ...] = ()
    meaning: float | None = None
    parts: dict[str, float] = {}


class Recollection(msgspec.Struct, frozen=True, omit_defaults=True):
    """One remembered thing, best first in a result.

    Attributes:
        text: verbatim and not escaped; cut only if `truncated` is set.
        session: the session it comes from; empty if unknown.
        at: when it was said or written, milliseconds; 0 if unknown.
        speaker: who said it; empty if unknown.
        score: larger is better; comparable within one provider only.
        source: where the provider found it (a file, an index); empty if unknown.
        truncated: whether the provider left something out.
        event: id of the event that brought it; empty if the provider does not know.
        until: when something newer replaced it, milliseconds; 0 if it is current, as far as the
            provider knows.
        before: in short, what it replaced; empty if it replaced nothing.
        why: why it was found; needed only if `RecallContext.explain` is set.
    """

    text: str
    session: str = ""
    at: int = 0
    speaker: str = ""
    score: float = 0.0
    source: str = ""
    truncated: bool = False
    event: str = ""
    until: int = 0
    before: str = ""
    why: Why | None = None


class StoredMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a provider keeps, as `MemoryProvider.export` yields it.

    Attributes:
        text: verbatim, as the backend has it.
        agent: the agent; empty if it belongs to no single agent.
        user: the person; empty if it belongs to no single person.
        workspace: the project.
        kind: the backend's own word for its kind ("fact", "conclusion"); empty if it has none.
        session: the session it comes from; empty if unknown.
        at: when it was said or written, milliseconds; 0 if unknown.
        speaker: who said it; empty if unknown.
        event: id of the event that brought it; empty if the provider does not know.
        until: when something newer replaced it, milliseconds; 0 if it is current.
        name: its name in the provider's tools; empty if they have none for it.
        former: whether it is what an entry said before it was replaced or removed; the agent and
            operators can change it no more.
        state: what the curator made of it.
        since: since when it has this state, milliseconds; 0 if it never had another.
        used: when it was last recalled, to the day, milliseconds; 0 if never.
        successor: name of the memory that stands for it; empty for none.
        ages: whether the curator decides how it ages; False if its backend does.
    """

    text: str
    agent: str = ""
    user: str = ""
    workspace: str = ""
    kind: str = ""
    session: str = ""
    at: int = 0
    speaker: str = ""
    event: str = ""
    until: int = 0
    name: str = ""
    former: bool = False
    state: MemoryState = "active"
    since: int = 0
    used: int = 0
    successor: str = ""
    ages: bool = True


class MemoryOwner(msgspec.Struct, frozen=True, omit_defaults=True):
    """An owner of whom a provider keeps memories.

    Attributes:
        agent: the agent.
        user: the person.
        workspace: the project; empty for none.
        memories: how many there are; None if counting would take long.
    """

    agent: str
    user: str
    workspace: str = ""
    memories: int | None = None


class Residue(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an erasure left, as far as the provider knows.

    Attributes:
        erased: how many memories it erased, as the backend counts them; None if unknown.
        remains: what it could not erase: for each a sentence with the place, what is there and what
            an operator can do, without any of the erased texts. Empty if nothing is left.
    """

    erased: int | None = None
    remains: tuple[str, ...] = ()


class Fence(msgspec.Struct, frozen=True):
    """The right to write to a lane: its name (``p07``) and the owner's epoch."""

    lane: str
    epoch: int


class Progress(msgspec.Struct, frozen=True):
    """How far a lane has come in the provider's own store. ``entry`` "0-0" is the beginning."""

    epoch: int
    entry: str
    n: int


class Transaction(Protocol):
    """One open transaction of a transactional provider."""

    def applied(self, event_ids: Sequence[str]) -> frozenset[str]:
        """Return those of `event_ids` that the ledger already holds."""
        ...

    def record(self, event_ids: Sequence[str], progress: Progress) -> None:
        """Write the ids into the ledger and advance the lane; commits with everything else."""
        ...


class MemoryProvider(ABC):
    """A memory backend behind the bus. Override what the backend can use."""

    kind: ClassVar[str]
    delivery: ClassVar[Delivery] = "blind"
    placement: ClassVar[Placement] = "shared"
    capabilities: ClassVar[Capabilities] = Capabilities()
    fresh_options: ClassVar[tuple[str, ...]] = ()
    """Options that name where a shared provider's state is. A copy needs other values for them."""
    tunable: ClassVar[frozenset[str]] = frozenset()
    """The options that a copy's record in Redis may set (``--set``).

    Anyone who can write to Redis can set them. So they may be numbers, and names within the backend
    that the settings name; never a path, an address, code, a command, a variable's name, or who
    sees whose memories. All other options come from the worker's own settings, those of a copy from
    the table ``[provider."COPY"]``.
    """
    bulk_turns: ClassVar[int] = 100
    """How many turns `sync_turns` takes at once at most."""
    mirrors: ClassVar[bool] = False
    """Whether it keeps a copy of what the agent writes to its own files (`builtin`)."""
    derives: ClassVar[bool] = False
    """Whether it notes sessions that are due, and has the material for derivers."""
    time_limits: Mapping[type[Event], float] = MappingProxyType({})
    """Seconds that the hook of an event may take, by event type, if not ``call_timeout``.

    The lane's lease is held for this long, and the other events of the instance wait.
    """
    note: str = ""
    """What people should know about an instance; ``provider ls`` and ``doctor`` show it."""

    def __init__(self, config: ProviderConfig) -> None:
        self.config = config

    # -- life ---------------------------------------------------------------------------------

    @classmethod
    def is_available(cls, config: ProviderConfig) -> bool:
        """Say without network access whether an instance could be opened."""
        return True

    def open(self) -> None:
        """Open connections and files. Called once, from the thread that will call the hooks."""

    def shutdown(self) -> None:
        """Release everything. It comes after the last hook has returned, on any thread.

        It may never come, and must be safe to call twice.
        """

    def report(self) -> str:
        """Say in one line what an operator should know of the open instance now; "" for nothing.

        Workers call this about once a second, from another thread than the one that calls the
        hooks, and send the answer with their heartbeat. It must answer at once, from memory.
        """
        return ""

    def health(self, deadline: float) -> str:
        """Say why the open instance could not serve now, and what to do; "" if it is well.

        Unlike `report` it may send requests to the backend, without changing anything there.
        ``memorybus doctor`` has it called where recalls run.

        Args:
            deadline: seconds for the answer.

        Raises:
            ProviderError: as any hook; the message is shown.
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
        """Return a digest of the state, as pairs of key and digest in the order of keys (G8).

        For a provider whose state is a function of events: two instances to which the same events
        were applied give the same pairs, however the events of different keys were mixed. A key is
        understood by people (see `digests.key_of`). The digest covers everything that recalls
        depend on, but no row numbers, times of application, epochs or ledger.

        Args:
            after: only keys above this one, so that a long list can be asked for in parts.

        Returns:
            None if there is no such digest: memories that a model derives are never the same twice.
        """
        return None

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]] | None:
        """Describe the options: dicts with ``key``, ``description``, ``default``, ``required``.

        For set-up dialogues also: ``choices`` (the possible values), ``hint`` (an example, or where
        to find the value), ``type`` (text, number, flag or list; if missing, that of the default)
        and ``secret``: the option names the environment variable that holds a secret.

        Returns:
            Empty if there are no options, so that each given one is an error. None if any may be
            given.
        """
        return None

    def fetch(self) -> None:
        """Fetch from a network what the instance needs; an open instance fetches nothing.

        ``memorybus provider setup`` calls this before it tries the instance.

        Raises:
            Unavailable: it cannot be fetched.
        """

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
        the turns that are due in a lane, at most `bulk_turns`. A turn in doubt, a turn that is
        tried again and a dead letter still come by `sync_turn`. Turns are in the order of the log,
        and several may be of one session; each context's deadline is that of the whole call. It is
        not called for ``transactional`` providers, whose transaction is the batch.

        If a turn fails, no later turn of the same session may have been remembered (G3): the host
        sends these again after it, whatever the answer says of them.

        Returns:
            What failed, by event id, with the error that `sync_turn` would have raised; empty if
            all is remembered. A turn that is not named counts as remembered.

        Raises:
            ProviderError: nothing is known of any turn. Each then counts as having failed with this
                error, and as in doubt after `Transient` and `Unavailable` (G4). The host tries each
                turn alone.
        """
        for turn in turns:
            self.sync_turn(*turn)
        return {}

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Mirror a write to the agent's memory or user store."""

    def on_memory_curated(self, event: MemoryCurated, ctx: HookContext) -> None:
        """Give a memory of ``ctx.scope`` its new state, unless a later change is known already.

        The later change is the one of the greater (``ctx.at``, ``ctx.event_id``): events and tools
        of several order keys may change a memory. It may come before the memory itself.
        """

    def on_session_switch(self, event: SessionSwitched, ctx: HookContext) -> None:
        """The conversation goes on in ``ctx.session``."""

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Forget what came from some events, which were retracted: a turn that was undone.

        Called like a write hook (G4), for a `SessionSwitched` that names events. They stood before
        it under the same order key, so that they are applied already, were parked and discarded, or
        never reached this provider: an unknown id changes nothing. The ids come from a publisher,
        so forget only what belongs to ``ctx.scope`` and to the lineage of ``ctx.session``. What
        another event that stays has said as well stays.
        """

    def on_pre_compress(self, event: ContextCompressing, ctx: HookContext) -> str:
        """Save what is about to leave the window; return text worth keeping in the summary."""
        return ""

    def on_delegation(self, event: Delegated, ctx: HookContext) -> None:
        """Remember what a sub-agent did."""

    def on_session_end(self, event: SessionEnded, ctx: HookContext) -> None:
        """A session is over."""

    def on_derived(self, event: Derived, ctx: HookContext) -> None:
        """Keep what was concluded from earlier events; ``ctx.event_id`` is the conclusion's name.

        Its sources may be retracted before or after it, since they have other order keys.
        """

    def knows(self, event_id: str, ctx: HookContext) -> bool:
        """Return whether the backend holds an event already (delivery ``lookup``, G4).

        Called for an event that was sent but not answered, before it is sent again: after a crash,
        an error or a time-out it is unknown whether the backend holds it.
        """
        raise NotImplementedError(f"{self.kind} is of delivery `lookup` and must define knows()")

    # -- what is kept of somebody -------------------------------------------------------------

    def forget(self, scope: RecallScope) -> Residue:
        """Erase all that is kept of a scope, from the backend and from what lies beside it.

        An operator asks for it (``memorybus forget``), once every lane has applied or left out what
        the log had of the scope. A part of the scope that is None stands for everyone's: a person's
        memories with every agent are ``RecallScope(None, "ada", None)``; at least one part is
        given. To a scope belongs what its events brought, whoever may see it. It is erased for
        good: also from indexes, vectors, histories, queues, caches and free pages of files.

        Called on an instance that recalls, perhaps in another process than the lanes. They go on
        meanwhile, and what another instance holds in memory must not bring anything back. It may
        come twice: a scope of which nothing is kept is no error.

        Returns:
            What is left nevertheless. Once something was erased, return this rather than raise.

        Raises:
            Transient, Unavailable: it may be called again, from the beginning.
        """
        raise NotImplementedError(f"{self.kind} declares `forgets` and must define forget()")

    def export(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield all that is kept of a scope, in an order that stays the same.

        The scope means the same as for `forget`: this yields what that erases, including what
        recalls no longer show. Use constant memory: page through the backend.
        """
        raise NotImplementedError(f"{self.kind} declares `exports` and must define export()")

    def curated(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield the memories of a scope that a curator looks after, in an order that stays.

        That is what was chosen to be kept, or derived; not what was merely said.
        """
        raise NotImplementedError(f"{self.kind} declares `curates` and must define curated()")

    def owners(self, after: tuple[str, str, str] | None = None) -> Iterator[MemoryOwner] | None:
        """Yield the owners whose memories are kept, in the order of agent, person and workspace.

        For an operator who looks for somebody. It is called page by page: the first owners must
        come at once, however many there are.

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

        Nothing outside `scope` may be in it. It is called where recalls run, ahead of the session
        that shows it. The agent gets the text as data, escaped and within a fence, and only its
        beginning if it is long (the setting `prompt_budget`).
        """
        return ""

    def get_tool_schemas(self) -> Sequence[Mapping[str, Any]]:
        """Return OpenAI function schemas of this provider's tools. Works before `open`."""
        return ()

    def handle_tool_call(
        self, tool: str, arguments: Mapping[str, Any], ctx: HookContext
    ) -> Mapping[str, Any]:
        """Run a tool and return a JSON-able result.

        A writing tool runs in its lane, as every write hook does, and may come again after a crash
        (G4; it is recognised by ``ctx.event_id``). One of `Capabilities.reading_tools` runs on an
        instance that recalls, perhaps in another process: its ``ctx.position`` is not in the log.
        """
        raise NotImplementedError(f"{self.kind} has no tool {tool!r}")


class TransactionalProvider(MemoryProvider):
    """A provider that commits its effects, a ledger of event ids and the checkpoint as one (G4)."""

    delivery: ClassVar[Delivery] = "transactional"

    def progress(self, lane: str) -> Progress | None:
        """Return the lane's committed progress, or None if the store has never seen it."""
        raise NotImplementedError

    def transaction(self, fence: Fence) -> AbstractContextManager[Transaction]:
        """Open a transaction, refused with `LeaseLost` if the store knows a newer epoch (G5).

        Hooks called inside it take part in it. Leaving it commits; an exception rolls back.
        """
        raise NotImplementedError


def refuse_stale(fence: Fence, seen: int | None) -> None:
    """Return unless a store has seen a newer owner of a lane (G5); `seen` is its epoch, if any.

    Raises:
        LeaseLost: the store has seen a newer owner.
    """
    if seen is not None and seen > fence.epoch:
        raise LeaseLost(
            f"lane {fence.lane}: epoch {fence.epoch} is stale, the store has seen {seen}",
            fenced=True,
        )


def argument_schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, without what only documents the code."""
    (schema,), definitions = msgspec.json.schema_components([kind])
    body = dict(definitions[str(schema["$ref"]).rsplit("/", 1)[-1]])
    return {name: value for name, value in body.items() if name not in {"title", "description"}}
