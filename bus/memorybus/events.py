"""The events of an agent's life: frozen, tagged, versioned structs (the wire contract).

Field names are the wire format. A field may be added with a default. A rename or a change of
meaning raises the event's version and adds an upcast (`wire.codec`). Bytes of every version ever
written stay in ``tests/golden/``.

The garbage collector does not follow these structs: they are frozen and made of decoded values, so
they are in no cycle, and tracing a batch of them would cost as much as decoding it.
"""

from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

Message: TypeAlias = dict[str, Any]
"""An OpenAI-style chat message; unknown fields are kept."""

StoreName = Literal["memory", "user"]
Settlement = Literal["discard", "edit"]
MemoryState = Literal["active", "stale", "archived", "pinned"]
Omission = Literal["volatile", "filtered", "retention", "forgotten"]
WriteAction = Literal["add", "replace", "remove"]
DerivedKind = Literal["fact", "summary", "profile", "topic"]
Arrival = Literal["warm", "fresh", "late"]
Reason = Literal["start", "branch", "compression", "resume", "reset", "rewind", "delegation"]
LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999; no event is later."""

LARGEST_BODY = 64 << 20  # bytes of the largest envelope that is read (G10)


class Scope(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The owner of an event.

    Attributes:
        agent: the agent's identity (its profile).
        user: the person.
        workspace: the project or team, if the agent knows one.
        platform: where the conversation happens (cli, telegram, …).
    """

    agent: str = "default"
    user: str = "default"
    workspace: str = ""
    platform: str = ""


class SessionRef(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A session's place in its lineage.

    Attributes:
        id: the session.
        root: the first session of the lineage; the order key consists of it and the scope.
        parent: the session that it came from; empty for a root.
        epoch: grows with each undo and each compression in place; then turn ordinals start over.
    """

    id: str
    root: str
    parent: str = ""
    epoch: int = 0


class Position(msgspec.Struct, frozen=True, order=True, gc=False):
    """The place of an entry in one partition of the log.

    Attributes:
        partition: the partition's number.
        entry: the stream entry id, ``ms-seq``.
        n: the entry's dense number within the partition, from 1.
    """

    partition: int
    entry: str
    n: int


class Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    gc=False,
    tag_field="type",
    tag=True,
):
    """Base of all events."""

    version: ClassVar[int] = 1
    volatile: ClassVar[bool] = False


class SessionStarted(Event, frozen=True, kw_only=True):
    """A session began (Hermes: ``initialize``).

    Attributes:
        platform: where the conversation happens.
        agent_context: the kind of run, as the host names it.
        title: what the session is about, if known.
        parent: the session it came from.
        reason: how it came from that session.
        details: what else the host says of the session, under the host's own names (Hermes:
            ``chat_id``, ``thread_id``, ``gateway_session_key``, …).
    """

    platform: str = ""
    agent_context: str = "primary"
    title: str = ""
    parent: str = ""
    reason: Reason = "start"
    details: dict[str, str] = {}


class TurnStarted(Event, frozen=True, kw_only=True):
    """The user has spoken (Hermes: ``on_turn_start``). Volatile: never archived.

    Attributes:
        number: the turn's number, as the host counts.
        message: what the user said.
        model: the model that is about to answer, if the host says so.
        platform: where the message was said, if the host says so.
        remaining_tokens: the free tokens of the context window; -1 if unknown.
        tool_count: how many tools the model is offered; -1 if unknown.
    """

    volatile: ClassVar[bool] = True
    number: int = 0
    message: str = ""
    model: str = ""
    platform: str = ""
    remaining_tokens: int = -1
    tool_count: int = -1


class TurnCompleted(Event, frozen=True, kw_only=True):
    """One exchange is over (Hermes: ``sync_turn``).

    Attributes:
        user: what the person said, as text.
        assistant: what the agent answered, as text.
        messages: this turn's messages only, cleaned; may be empty.
        user_name: the person's name in the conversation, where known.
        assistant_name: the agent's name in the conversation, where known.
        ordinal: the turn's number within (session, epoch), from 0; -1 if unknown.
        model: the model that answered.
        tokens_in: prompt tokens of all its calls of the model, also cached ones; 0 if unknown.
        tokens_out: completion tokens of all its calls; 0 if unknown.
        cost: US dollars of all its calls; -1 if unknown.
        synthetic: whether the host wrote `user` itself, so that nobody said it (for example
            because a background task ended).
        source_id: the id that an imported turn's source gave the message with which it begins; ""
            if there is none.
        replaces: the event with an older form of this turn, which an import has read again since
            (it was longer, or edited); a rewind that retracts it follows. "" for none.
    """

    user: str = ""
    assistant: str = ""
    messages: tuple[Message, ...] = ()
    user_name: str = ""
    assistant_name: str = ""
    ordinal: int = -1
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = -1.0
    synthetic: bool = False
    source_id: str = ""
    replaces: str = ""


class MemoryWritten(Event, frozen=True, kw_only=True):
    """The agent wrote to one of its two stores (Hermes: ``on_memory_write``).

    Attributes:
        action: add ``content``; replace the entry that contains ``old_text`` by ``content``;
            remove the entry that contains ``old_text``.
        store: ``memory`` (the agent's notes) or ``user`` (what it knows of the person).
        provenance: write origin, tool call id and the like.
    """

    action: WriteAction
    store: StoreName = "memory"
    content: str = ""
    old_text: str = ""
    provenance: dict[str, str] = {}


class SessionSwitched(Event, frozen=True, kw_only=True):
    """The conversation continued under another id or epoch (Hermes: ``on_session_switch``).

    The envelope's session is the new one.

    Attributes:
        new_id: its id.
        parent: the session that was left, empty after a rewind.
        reason: why the session was switched.
        reset: whether the conversation starts over.
        rewound: whether turns were undone.
        retracted: the ids of the events that were undone. They come before this one under the same
            order key, so that a provider always gets them first (G3).
    """

    new_id: str
    parent: str = ""
    reason: Reason = "resume"
    reset: bool = False
    rewound: bool = False
    retracted: tuple[str, ...] = ()


class ContextCompressing(Event, frozen=True, kw_only=True):
    """Messages are about to leave the context window (Hermes: ``on_pre_compress``)."""

    messages: tuple[Message, ...] = ()
    compression_count: int = 0
    wants_reply: bool = False


class Delegated(Event, frozen=True, kw_only=True):
    """A sub-agent finished a task (Hermes: ``on_delegation``).

    Attributes:
        task: what it was asked to do.
        result: what it answered.
        child_session: the sub-agent's session.
        model: the model it used, where known.
        tokens_in: prompt tokens of all its calls of the model, also cached ones; 0 if unknown.
        tokens_out: completion tokens of all its calls; 0 if unknown.
        tool_count: how many tools it called; -1 if unknown.
    """

    task: str = ""
    result: str = ""
    child_session: str = ""
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    tool_count: int = -1


class ModelUsage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a host counted for one model in one session.

    Attributes:
        model: the model; "" if unknown.
        task: what it was called for beside the conversation, such as a title; "" for the
            conversation itself.
        calls: how often it was called.
        tokens_in: prompt tokens, also cached ones.
        tokens_out: completion tokens.
        cost: US dollars, as the host knows or estimates them; -1 if it does not.
    """

    model: str = ""
    task: str = ""
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = -1.0


class SessionEnded(Event, frozen=True, kw_only=True):
    """A session is over (Hermes: ``on_session_end``). Its turns are already in the log.

    Attributes:
        reason: why it ended.
        message_count: how many messages it had.
        messages: its messages, if the host passes them.
        usage: what the host counted for the whole session so far, by model; empty if unknown.
    """

    reason: str = ""
    message_count: int = 0
    messages: tuple[Message, ...] = ()
    usage: tuple[ModelUsage, ...] = ()


class ToolCalled(Event, frozen=True, kw_only=True):
    """The model called a provider's writing tool (Hermes: ``handle_tool_call``)."""

    provider: str
    tool: str
    arguments: dict[str, Any] = {}
    wants_reply: bool = False


class Derived(Event, frozen=True, kw_only=True):
    """Something was concluded from earlier events, by a model or by choosing sentences.

    Its order key is that of the person's store. It is applied like any event: a replay repeats the
    conclusion, and derives nothing again. Its id follows from the cause, the deriver and the kind,
    so that a cause has one conclusion however often it is derived.

    Attributes:
        kind: a ``fact``, the ``summary`` or a ``topic`` of the session, or the person's
            ``profile``.
        text: the conclusion.
        about: whom or what it is about; "" for the person and the session of the envelope.
        sources: the ids of the events that it came from. If one of them is retracted, so is this.
        supersedes: the ids of earlier conclusions that this one replaces.
        cause: the event that made the session due to be derived.
        deriver: the name of the deriver.
        revision: the version of the deriver, with that of its prompt.
        model: the model, if there was one.
        tokens_in: tokens of the prompts; 0 if unknown.
        tokens_out: tokens of the answers; 0 if unknown.
        cost: what the calls cost, in the currency of the deriver's price table; 0 if unknown.
    """

    kind: DerivedKind
    text: str
    about: str = ""
    sources: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    cause: str = ""
    deriver: str = ""
    revision: str = ""
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0


class MemoryCurated(Event, frozen=True, kw_only=True):
    """A memory changed its state: by its age, because it repeats another one, or by a person.

    The event's time is later than that of the memory's last change, even if a clock was set back:
    of several changes, whatever their order keys, the latest counts.

    Attributes:
        memory: the memory's name, as the tools show it.
        before: its state until now.
        after: its new state. An ``archived`` memory is not in prompts; a ``pinned`` one never ages.
        reason: why, for people.
        run: the curator's run that decided it; "" if a person did.
        successor: the memory that stands for it from now on, if it was archived as a repetition.
    """

    memory: str
    before: MemoryState
    after: MemoryState
    reason: str = ""
    run: str = ""
    successor: str = ""


class ShownMemories(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One provider's part of the block that a prompt was given.

    Attributes:
        provider: the provider.
        outcome: its answer was ready (``warm``), came in time (``fresh``), or was made for another
            prompt, because the one to this prompt was ``late``.
        events: for each of its memories in the block, in order, the id of the event that brought
            it; "" if the provider does not know.
        scores: likewise the values by which the provider sorted them.
    """

    provider: str
    outcome: Arrival
    events: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()


class Recalled(Event, frozen=True, kw_only=True):
    """A prompt was given memories. Volatile: never archived.

    No provider has a hook for it: lanes pass it, and no backend is called.

    Attributes:
        turn: the event of the turn that the prompt began; "" if it was not known.
        asked: the digest of the prompt's words (`ids.text_digest`).
        memories: each provider's part of the block.
        block: the block word for word, compressed (zlib).
    """

    volatile: ClassVar[bool] = True
    turn: str = ""
    asked: str = ""
    memories: tuple[ShownMemories, ...] = ()
    block: bytes = b""


class DeadLetterResolved(Event, frozen=True, kw_only=True):
    """An operator decided about an event that a provider refused (G6).

    It has the order key, scope and session of that event; no provider has a hook for it.

    Attributes:
        provider: the instance that refused the event.
        event_id: the event.
        action: whether it was discarded for that provider, or edited (replaced by another).
        reason: why, in the operator's words.
        operator: who decided, as ``user@host``.
        replacement: the fields of the event that replaces it, if it was edited.
    """

    provider: str
    event_id: str
    action: Settlement
    reason: str = ""
    operator: str = ""
    replacement: dict[str, Any] = {}


class CanarySent(Event, frozen=True, kw_only=True):
    """A test event: it shows whether events pass through the bus. Volatile: never archived.

    No provider has a hook for it: lanes pass it, and no backend is called.
    """

    volatile: ClassVar[bool] = True


class OperatorActed(Event, frozen=True, kw_only=True):
    """An operator changes something, by a command, on the web page or in `memorybus top`.

    The event is written before the change is made.

    No provider has a hook for it: lanes pass it, and no backend is called.

    Attributes:
        act: the action, for example "pause provider".
        operator: the name with which the operator signed in, or that a proxy gave.
        reason: why, in the operator's words.
        about: the names and ids of what is changed, and never what a person said.
        failed: why the change could not be made, in a second event; "" in the first.
    """

    act: str
    operator: str
    reason: str = ""
    about: dict[str, str] = {}
    failed: str = ""


class UnknownEvent(Event, frozen=True, kw_only=True):
    """An event of a type or version that this release does not know: it is parked, never dropped.

    Attributes:
        name: the type tag found on the wire.
        wire_version: the version found on the wire.
        raw: the event's own msgpack bytes, unchanged.
    """

    version: ClassVar[int] = 1 << 64  # no version on the wire is so high
    name: str
    wire_version: int
    raw: bytes


class Omitted(Event, frozen=True, kw_only=True):
    """Stands for an event that a reader of the history leaves out; no provider has a hook for it.

    Readers insert it, so that the numbers stay dense; nobody publishes it.

    Attributes:
        why: the event was ``volatile``, is not wanted by the query (``filtered``), is older than it
            may be kept (``retention``), or was ``forgotten``.
    """

    version: ClassVar[int] = 1 << 64  # no version on the wire is so high
    why: Omission = "filtered"


KnownEvent: TypeAlias = (
    SessionStarted
    | TurnStarted
    | TurnCompleted
    | MemoryWritten
    | SessionSwitched
    | ContextCompressing
    | Delegated
    | SessionEnded
    | ToolCalled
    | Derived
    | MemoryCurated
    | Recalled
    | DeadLetterResolved
    | CanarySent
    | OperatorActed
)
AnyEvent: TypeAlias = KnownEvent | UnknownEvent | Omitted

EVENT_TYPES: tuple[type[Event], ...] = (
    SessionStarted,
    TurnStarted,
    TurnCompleted,
    MemoryWritten,
    SessionSwitched,
    ContextCompressing,
    Delegated,
    SessionEnded,
    ToolCalled,
    Derived,
    MemoryCurated,
    Recalled,
    DeadLetterResolved,
    CanarySent,
    OperatorActed,
)


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An event with everything that the bus needs to order, scope and de-duplicate it.

    Attributes:
        id: 32 hex digits, a UUIDv7 or derived from an idempotency key.
        key: the order key, ``session:<owner_slot>:<root>`` or ``store:<owner>:<store>``.
        scope: its owner.
        session: where in the lineage it happened.
        at: wall time of the event, milliseconds since the Unix epoch.
        v: the event type's version.
        trace: W3C traceparent, or empty.
        event: what happened.
    """

    id: str
    key: str
    scope: Scope
    session: SessionRef
    at: int
    v: int = 1
    trace: str = ""
    event: AnyEvent
