"""The events of an agent's life: frozen, tagged, versioned structs (the wire contract).

Field names are the wire format. A field may be added with a default. A rename or a change of
meaning raises the event's version and adds an upcast (`wire.codec`). Bytes of every version ever
written stay in ``tests/golden/``.

The garbage collector does not follow these structs: they are frozen and made of decoded values, so
they are in no cycle, and tracing a batch of them would cost as much as decoding it.
"""

from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

Message: TypeAlias = dict[str, Any]  # an OpenAI-style chat message; unknown fields are kept

StoreName = Literal["memory", "user"]
Settlement = Literal["discard", "edit"]
MemoryState = Literal["active", "stale", "archived", "pinned"]
Omission = Literal["volatile", "filtered", "retention", "forgotten"]
WriteAction = Literal["add", "replace", "remove"]
DerivedKind = Literal["fact", "summary", "profile", "topic"]
Arrival = Literal["warm", "fresh", "late"]
Reason = Literal["start", "branch", "compression", "resume", "reset", "rewind", "delegation"]
LATEST = 253_402_300_799_999  # the last millisecond of the year 9999; no event is later

LARGEST_BODY = 64 << 20  # bytes of the largest envelope that is read (G10)


class Scope(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The owner of an event."""

    agent: str = "default"  # the agent's identity (its profile)
    user: str = "default"  # the person
    workspace: str = ""  # the project or team, if the agent knows one
    platform: str = ""  # where the conversation happens (cli, telegram, …)


class SessionRef(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A session's place in its lineage."""

    id: str  # the session
    root: str  # the first session of the lineage; the order key consists of it and the scope
    parent: str = ""  # the session that it came from; empty for a root
    # grows with each undo and each compression in place; then turn ordinals start over
    epoch: int = 0


class Position(msgspec.Struct, frozen=True, order=True, gc=False):
    """The place of an entry in one partition of the log."""

    partition: int  # the partition's number
    entry: str  # the stream entry id, ``ms-seq``
    n: int  # the entry's dense number within the partition, from 1


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
    """A session began (Hermes: ``initialize``)."""

    platform: str = ""  # where the conversation happens
    agent_context: str = "primary"  # the kind of run, as the host names it
    title: str = ""  # what the session is about, if known
    parent: str = ""  # the session it came from
    reason: Reason = "start"  # how it came from that session
    # what else the host says of the session, under the host's own names (Hermes: ``chat_id``,
    # ``thread_id``, ``gateway_session_key``, …)
    details: dict[str, str] = {}


class TurnStarted(Event, frozen=True, kw_only=True):
    """The user has spoken (Hermes: ``on_turn_start``). Volatile: never archived."""

    volatile: ClassVar[bool] = True
    number: int = 0  # the turn's number, as the host counts
    message: str = ""  # what the user said
    model: str = ""  # the model that is about to answer, if the host says so
    platform: str = ""  # where the message was said, if the host says so
    remaining_tokens: int = -1  # the free tokens of the context window; -1 if unknown
    tool_count: int = -1  # how many tools the model is offered; -1 if unknown


class ShownMemories(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One provider's part of the block that a prompt was given."""

    provider: str  # the provider
    # its answer was ready (``warm``), came in time (``fresh``), or was made for another prompt,
    # because the one to this prompt was ``late``
    outcome: Arrival
    # for each of its memories in the block, in order, the id of the event that brought it; "" if
    # the provider does not know
    events: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()  # likewise the values by which the provider sorted them


class TurnCompleted(Event, frozen=True, kw_only=True):
    """One exchange is over (Hermes: ``sync_turn``)."""

    user: str = ""  # what the person said, as text
    assistant: str = ""  # what the agent answered, as text
    messages: tuple[Message, ...] = ()  # this turn's messages only, cleaned; may be empty
    user_name: str = ""  # the person's name in the conversation, where known
    assistant_name: str = ""  # the agent's name in the conversation, where known
    ordinal: int = -1  # the turn's number within (session, epoch), from 0; -1 if unknown
    model: str = ""  # the model that answered
    # prompt tokens of all its calls of the model, also cached ones; 0 if unknown
    tokens_in: int = 0
    tokens_out: int = 0  # completion tokens of all its calls; 0 if unknown
    cost: float = -1.0  # US dollars of all its calls; -1 if unknown
    # whether the host wrote `user` itself, so that nobody said it (for example because a background
    # task ended)
    synthetic: bool = False
    # the id that an imported turn's source gave the message with which it begins; "" if there is
    # none
    source_id: str = ""
    # The event with an older form of this turn, which an import has read again since (it was
    # longer, or edited); a rewind that retracts it follows. "" for none.
    replaces: str = ""
    # What its prompt was given, by each provider that was asked, without scores. A turn that is
    # published again without it is the same turn (G2).
    recalled: tuple[ShownMemories, ...] = ()


class MemoryWritten(Event, frozen=True, kw_only=True):
    """The agent wrote to one of its two stores (Hermes: ``on_memory_write``)."""

    # add ``content``; replace the entry that contains ``old_text`` by ``content``; remove the entry
    # that contains ``old_text``
    action: WriteAction
    # ``memory`` (the agent's notes) or ``user`` (what it knows of the person)
    store: StoreName = "memory"
    content: str = ""
    old_text: str = ""
    provenance: dict[str, str] = {}  # write origin, tool call id and the like


class SessionSwitched(Event, frozen=True, kw_only=True):
    """The conversation continued under another id or epoch (Hermes: ``on_session_switch``).

    The envelope's session is the new one.
    """

    new_id: str  # its id
    parent: str = ""  # the session that was left, empty after a rewind
    reason: Reason = "resume"  # why the session was switched
    reset: bool = False  # whether the conversation starts over
    rewound: bool = False  # whether turns were undone
    # The ids of the events that were undone. They come before this one under the same order key, so
    # that a provider always gets them first (G3).
    retracted: tuple[str, ...] = ()


class ContextCompressing(Event, frozen=True, kw_only=True):
    """Messages are about to leave the context window (Hermes: ``on_pre_compress``)."""

    messages: tuple[Message, ...] = ()
    compression_count: int = 0
    wants_reply: bool = False


class Delegated(Event, frozen=True, kw_only=True):
    """A sub-agent finished a task (Hermes: ``on_delegation``)."""

    task: str = ""  # what it was asked to do
    result: str = ""  # what it answered
    child_session: str = ""  # the sub-agent's session
    model: str = ""  # the model it used, where known
    # prompt tokens of all its calls of the model, also cached ones; 0 if unknown
    tokens_in: int = 0
    tokens_out: int = 0  # completion tokens of all its calls; 0 if unknown
    tool_count: int = -1  # how many tools it called; -1 if unknown


class ModelUsage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a host counted for one model in one session."""

    model: str = ""  # the model; "" if unknown
    # what it was called for beside the conversation, such as a title; "" for the conversation
    # itself
    task: str = ""
    calls: int = 0  # how often it was called
    tokens_in: int = 0  # prompt tokens, also cached ones
    tokens_out: int = 0  # completion tokens
    cost: float = -1.0  # US dollars, as the host knows or estimates them; -1 if it does not


class SessionEnded(Event, frozen=True, kw_only=True):
    """A session is over (Hermes: ``on_session_end``). Its turns are already in the log."""

    reason: str = ""  # why it ended
    message_count: int = 0  # how many messages it had
    messages: tuple[Message, ...] = ()  # its messages, if the host passes them
    # what the host counted for the whole session so far, by model; empty if unknown
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
    """

    # a ``fact``, the ``summary`` or a ``topic`` of the session, or the person's ``profile``
    kind: DerivedKind
    text: str  # the conclusion
    about: str = ""  # whom or what it is about; "" for the person and the session of the envelope
    # The ids of the events that it came from. If one of them is retracted, so is this.
    sources: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()  # the ids of earlier conclusions that this one replaces
    cause: str = ""  # the event that made the session due to be derived
    deriver: str = ""  # the name of the deriver
    revision: str = ""  # the version of the deriver, with that of its prompt
    model: str = ""  # the model, if there was one
    tokens_in: int = 0  # tokens of the prompts; 0 if unknown
    tokens_out: int = 0  # tokens of the answers; 0 if unknown
    # what the calls cost, in the currency of the deriver's price table; 0 if unknown
    cost: float = 0.0


class MemoryCurated(Event, frozen=True, kw_only=True):
    """A memory changed its state: by its age, because it repeats another one, or by a person.

    The event's time is later than that of the memory's last change, even if a clock was set back:
    of several changes, whatever their order keys, the latest counts.
    """

    memory: str  # the memory's name, as the tools show it
    before: MemoryState  # its state until now
    # Its new state. An ``archived`` memory is not in prompts; a ``pinned`` one never ages.
    after: MemoryState
    reason: str = ""  # why, for people
    run: str = ""  # the curator's run that decided it; "" if a person did
    # the memory that stands for it from now on, if it was archived as a repetition
    successor: str = ""


class Recalled(Event, frozen=True, kw_only=True):
    """A prompt was given memories. Volatile: never archived.

    No provider has a hook for it: lanes pass it, and no backend is called.
    """

    volatile: ClassVar[bool] = True
    turn: str = ""  # the event of the turn that the prompt began; "" if it was not known
    asked: str = ""  # the digest of the prompt's words (`ids.text_digest`)
    memories: tuple[ShownMemories, ...] = ()  # each provider's part of the block
    block: bytes = b""  # the block word for word, compressed (zlib)


class DeadLetterResolved(Event, frozen=True, kw_only=True):
    """An operator decided about an event that a provider refused (G6).

    It has the order key, scope and session of that event; no provider has a hook for it.
    """

    provider: str  # the instance that refused the event
    event_id: str  # the event
    # whether it was discarded for that provider, or edited (replaced by another)
    action: Settlement
    reason: str = ""  # why, in the operator's words
    operator: str = ""  # who decided, as ``user@host``
    replacement: dict[str, Any] = {}  # the fields of the event that replaces it, if it was edited


class CanarySent(Event, frozen=True, kw_only=True):
    """A test event: it shows whether events pass through the bus. Volatile: never archived.

    No provider has a hook for it: lanes pass it, and no backend is called.
    """

    volatile: ClassVar[bool] = True


class OperatorActed(Event, frozen=True, kw_only=True):
    """An operator changes something, by a command, on the web page or in `memorybus top`.

    The event is written before the change is made.

    No provider has a hook for it: lanes pass it, and no backend is called.
    """

    act: str  # the action, for example "pause provider"
    operator: str  # the name with which the operator signed in, or that a proxy gave
    reason: str = ""  # why, in the operator's words
    about: dict[str, str] = {}  # the names and ids of what is changed, and never what a person said
    failed: str = ""  # why the change could not be made, in a second event; "" in the first


class UnknownEvent(Event, frozen=True, kw_only=True):
    """An event of a type or version that this release does not know: parked, never dropped."""

    version: ClassVar[int] = 1 << 64  # no version on the wire is so high
    name: str  # the type tag found on the wire
    wire_version: int  # the version found on the wire
    raw: bytes  # the event's own msgpack bytes, unchanged


class Omitted(Event, frozen=True, kw_only=True):
    """Stands for an event that a reader of the history leaves out; no provider has a hook for it.

    Readers insert it, so that the numbers stay dense; nobody publishes it.
    """

    version: ClassVar[int] = 1 << 64  # no version on the wire is so high
    # the event was ``volatile``, is not wanted by the query (``filtered``), is older than it may be
    # kept (``retention``), or was ``forgotten``
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
    """An event with everything that the bus needs to order, scope and de-duplicate it."""

    id: str  # 32 hex digits, a UUIDv7 or derived from an idempotency key
    key: str  # the order key, ``session:<owner_slot>:<root>`` or ``store:<owner>:<store>``
    scope: Scope  # its owner
    session: SessionRef  # where in the lineage it happened
    at: int  # wall time of the event, milliseconds since the Unix epoch
    v: int = 1  # the event type's version
    trace: str = ""  # W3C traceparent, or empty
    event: AnyEvent  # what happened
