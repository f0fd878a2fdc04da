"""What the gateway is asked, and what it answers; the OpenAPI document is made from these types.

The fields of a request that its path names are taken from there; those of a GET or a DELETE from
the query; all others from the body.
"""

from typing import Annotated, Any, Literal

import msgspec
from memorybus.events import (
    ContextCompressing,
    Delegated,
    MemoryWritten,
    Message,
    Reason,
    Scope,
    SessionEnded,
    SessionRef,
    TurnCompleted,
    TurnStarted,
)
from memorybus.receipt import Level, Receipt

AgentEvent = (
    TurnStarted | TurnCompleted | MemoryWritten | ContextCompressing | Delegated | SessionEnded
)
"""The events that an agent publishes; sessions are started, branched and undone by their paths."""

MOST_EVENTS = 1_000
MOST_SECONDS = 60.0

WaitSeconds = Annotated[float, msgspec.Meta(ge=0, le=MOST_SECONDS)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]
Hex = Annotated[str, msgspec.Meta(pattern="^([0-9a-fA-F]{32})?$")]


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all requests."""


class OwnedRequest(ApiRequest, frozen=True, kw_only=True):
    """Whose memory a request is about; what is "" follows from the key, else from the settings.

    Attributes:
        agent: the agent.
        user: the person.
        workspace: the project or team.
        platform: where the conversation happens.
    """

    agent: str = ""
    user: str = ""
    workspace: str = ""
    platform: str = ""

    def scope(self) -> Scope:
        """Return the owner that the request names."""
        return Scope(
            agent=self.agent, user=self.user, workspace=self.workspace, platform=self.platform
        )


class PublishedEvent(OwnedRequest, frozen=True, kw_only=True):
    """One event of a session; the session starts with its first one.

    Attributes:
        session: the session's id.
        event: what happened.
        id: its id, 32 hex digits; the same id again adds nothing (G2).
        at: when it happened, milliseconds since the Unix epoch; now if 0.
    """

    session: NonEmpty
    event: AgentEvent
    id: Hex = ""
    at: int = 0


class Publish(ApiRequest, frozen=True, kw_only=True):
    """Publish events, in this order.

    Attributes:
        events: the events.
        level: how safe they shall be before the answer: in the gateway's spool, in the log, or
            also on a replica (G1).
        timeout: the most seconds to wait for a level above ``spooled``.
    """

    events: Annotated[
        tuple[PublishedEvent, ...], msgspec.Meta(min_length=1, max_length=MOST_EVENTS)
    ]
    level: Level = "spooled"
    timeout: WaitSeconds = 10.0


class Published(msgspec.Struct, frozen=True):
    """Receipts of published events, in their order.

    Attributes:
        receipts: one for each event.
        reached: whether they are as safe as was asked; if not, they will be.
    """

    receipts: tuple[Receipt, ...]
    reached: bool


class StartSession(OwnedRequest, frozen=True, kw_only=True):
    """Start a session, or continue one that this gateway knows.

    Attributes:
        session: its id; a new one if "".
        title: what it is about; memories of this are recalled first.
        agent_context: the kind of run.
        details: what else is known of it.
    """

    session: str = ""
    title: str = ""
    agent_context: str = "primary"
    details: dict[str, str] = {}


class SessionRequest(OwnedRequest, frozen=True, kw_only=True):
    """A request of one session.

    Attributes:
        session: its id.
    """

    session: NonEmpty


class BranchSession(SessionRequest, frozen=True, kw_only=True):
    """Fork a conversation.

    Attributes:
        new_id: the branch's id; a new one if "".
        title: what it is about.
    """

    new_id: str = ""
    title: str = ""


class SwitchSession(SessionRequest, frozen=True, kw_only=True):
    """Continue a conversation under another id.

    Attributes:
        new_id: that id.
        reason: why.
        reset: whether it starts over.
    """

    new_id: NonEmpty
    reason: Reason = "resume"
    reset: bool = False


class CompressSession(SessionRequest, frozen=True, kw_only=True):
    """Continue a conversation after its window was compressed.

    Attributes:
        new_id: another id; the same session in its next epoch if "".
    """

    new_id: str = ""


class UndoEvents(SessionRequest, frozen=True, kw_only=True):
    """Take back what was said last.

    Attributes:
        events: the ids of the undone events.
    """

    events: Annotated[tuple[str, ...], msgspec.Meta(max_length=MOST_EVENTS)]


class SessionPlace(msgspec.Struct, frozen=True):
    """Where a session is in its lineage, and whose it is.

    Attributes:
        session: its place.
        scope: its owner.
    """

    session: SessionRef
    scope: Scope


class TranscriptLink(msgspec.Struct, frozen=True):
    """The events of a turn, and the line before its prompt ("" if none is named)."""

    parent: str
    events: tuple[str, ...]


class ReadTranscript(SessionRequest, frozen=True, kw_only=True):
    """Publish what the new lines of a host's transcript tell; the same lines again add nothing.

    Attributes:
        format: whose transcript it is.
        lines: lines of JSON, which follow those that were read before.
        stage: whether the last turn is over: not yet; if it has an answer; in any case.
        answer: the last words of the answer, if the host knows them; without them the last turn is
            not over.
        since: what was said before is left out, milliseconds.
        position: where the lines end in the transcript.
        reason: why the session ended there; null if it goes on.
        chain: the turns that were published before, as the last reply had them. A prompt that
            stands behind the same line as one of theirs takes that turn and the later ones back.
    """

    format: Literal["claude-code", "codex"]
    lines: str
    stage: Literal["open", "answered", "closed"] = "open"
    answer: str = ""
    since: int = 0
    position: int = 0
    reason: str | None = None
    chain: tuple[TranscriptLink, ...] = ()


class TranscriptRead(msgspec.Struct, frozen=True):
    """How much of a transcript has become events.

    Attributes:
        lines: how many of the lines; the others belong to a turn that is not over.
        turns: how many turns.
        chain: the newest turns, for the next request.
    """

    lines: int
    turns: int
    chain: tuple[TranscriptLink, ...] = ()


class Prefetch(SessionRequest, frozen=True, kw_only=True):
    """Ask for the memory block of a prompt.

    Attributes:
        query: the prompt; everything warm if "".
        known: the messages that the model sees anyway.
        wait: the most seconds to wait; the setting `prefetch_wait` if negative.
    """

    query: str = ""
    known: tuple[Message, ...] = ()
    wait: Annotated[float, msgspec.Meta(le=MOST_SECONDS)] = -1.0


class Block(msgspec.Struct, frozen=True):
    """A fenced block for a model's prompt; it is data, never an instruction (G10).

    Attributes:
        block: the block; "" if there is nothing.
    """

    block: str


class QueuePrefetch(SessionRequest, frozen=True, kw_only=True):
    """Ask for memories ahead of the next turn.

    Attributes:
        query: what the person said.
        answer: what the agent answered.
    """

    query: str
    answer: str = ""


class Contribute(SessionRequest, frozen=True, kw_only=True):
    """Publish what is about to leave the window, and wait for what providers want kept.

    Attributes:
        messages: these messages.
        compression_count: how often the session was compressed before.
        timeout: the most seconds to wait.
    """

    messages: tuple[Message, ...] = ()
    compression_count: int = 0
    timeout: WaitSeconds = 2.0


class CallTool(SessionRequest, frozen=True, kw_only=True):
    """Call a provider's tool for the model.

    Attributes:
        tool: its name, as the list of tools has it.
        arguments: as the model gave them.
        timeout: the most seconds to wait.
        id: the id for the event of a call that writes.
    """

    tool: NonEmpty
    arguments: dict[str, Any] = {}
    timeout: WaitSeconds = 10.0
    id: Hex = ""


class RecallQuery(OwnedRequest, frozen=True, kw_only=True):
    """Ask every provider now; for people and tools, not for a turn.

    Attributes:
        question: what to recall.
        session: the session that asks.
        providers: only these; all that answer recalls if empty.
        budget: the most characters; the setting `recall_budget` if 0.
        timeout: the most seconds to wait.
        as_of: only what was known at this time, milliseconds; now if 0.
    """

    question: NonEmpty
    session: str = ""
    providers: tuple[str, ...] = ()
    budget: Annotated[int, msgspec.Meta(ge=0)] = 0
    timeout: WaitSeconds = 10.0
    as_of: Annotated[int, msgspec.Meta(ge=0)] = 0


class ListMemories(OwnedRequest, frozen=True, kw_only=True):
    """List what a provider keeps of a person.

    Attributes:
        provider: the provider; the first that can list memories if "".
        containing: only memories with this text.
        skip: how many to skip.
        limit: the most to return.
    """

    provider: str = ""
    containing: str = ""
    skip: Annotated[int, msgspec.Meta(ge=0)] = 0
    limit: Count = 50


class DeleteMemoryOf(OwnedRequest, frozen=True, kw_only=True):
    """Delete a memory, and all others from the same event.

    Attributes:
        event: the event that it came from.
        provider: as this provider keeps it; the first that can list memories if "".
        text: if several memories came from the event: the one that contains this text.
        reason: why, for the record.
        wait: the most seconds to wait until providers have applied it.
    """

    event: NonEmpty
    provider: str = ""
    text: str = ""
    reason: str = ""
    wait: WaitSeconds = 30.0


class CorrectMemoryOf(DeleteMemoryOf, frozen=True, kw_only=True):
    """Correct a memory.

    Attributes:
        content: the right text.
    """

    content: NonEmpty


class ExportEvents(OwnedRequest, frozen=True, kw_only=True):
    """Export a person's events as lines of JSON, which `memorybus ingest` reads."""


class ForgetOwner(OwnedRequest, frozen=True, kw_only=True):
    """Erase a person's memories of every event up to now.

    Attributes:
        reason: why, for the record.
        confirm: whether to do it; without it the answer is what would be erased.
        wait: the most seconds to wait for lanes, and for each provider.
    """

    reason: str = ""
    confirm: bool = False
    wait: WaitSeconds = 60.0


class ActRequest(ApiRequest, frozen=True, kw_only=True):
    """Carry out an operator's act.

    Attributes:
        act: its name, as the list of acts has it.
        arguments: its arguments.
        reason: why, for the record.
        confirm: whether to do it; without it the answer is the plan.
        wait: the most seconds to wait for workers.
    """

    act: NonEmpty
    arguments: dict[str, Any] = {}
    reason: str = ""
    confirm: bool = False
    wait: WaitSeconds = 60.0


class ReadInsights(OwnedRequest, frozen=True, kw_only=True):
    """Count what agents did; a key that reaches everybody counts everybody, if nobody is named.

    Attributes:
        days: how many days, from now back.
        zone: the time zone of days and hours; that of the settings if "".
    """

    days: Annotated[int, msgspec.Meta(ge=1, le=3_660)] = 30
    zone: str = ""


class TailEvents(OwnedRequest, frozen=True, kw_only=True):
    """Follow the events of a person, from now on.

    Attributes:
        session: only this session.
        type: only events of this type.
    """

    session: str = ""
    type: str = ""


class Nothing(ApiRequest, frozen=True, kw_only=True):
    """A request without arguments."""
