"""The operations of the gateway, one typed method each.

A method takes the caller and the request, and returns a typed result. It runs on a thread, because
the bus waits. Whose memory a request is about follows from the caller's key (`ApiCaller.scope`).
"""

import threading
from collections import OrderedDict
from dataclasses import fields
from typing import Any, Final

import msgspec
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.errors import ConfigError, MissingEvent
from memorybus.events import (
    ContextCompressing,
    Delegated,
    MemoryWritten,
    Scope,
    SessionEnded,
    TurnCompleted,
    TurnStarted,
)
from memorybus.health.verdict import BusStateCache, Verdict
from memorybus.ids import Derivation
from memorybus.insights.report import Insights
from memorybus.msgspec_types import prepared
from memorybus.recall.model import RecallRequest
from memorybus.recall.operator_recall import RecallAnswer
from memorybus.receipt import Receipt
from msgspec.structs import asdict

from memorybus_console.actions.action import Action, Ground, perform
from memorybus_console.actions.every import ACTIONS
from memorybus_console.actions.history import Replay
from memorybus_console.actions.memories import (
    CorrectMemory,
    DeleteMemory,
    Forget,
    ImportArchive,
)
from memorybus_console.actions.providers import MoveProvider
from memorybus_console.gateway import messages as asked
from memorybus_console.gateway import transcripts
from memorybus_console.gateway.keys import ANY, ApiKey, NotAllowed
from memorybus_console.operations.forget import Erasure, PlannedErasure
from memorybus_console.operations.memories.amending import AmendmentResult, find_event
from memorybus_console.operations.memories.browsing import (
    Memories,
    first_browsable,
    list_memories,
)

_MOST_SESSIONS: Final = 10_000
"""The most sessions whose last topic is remembered."""

_NOT_REMOTE: Final = (CorrectMemory, DeleteMemory, Forget, ImportArchive, MoveProvider, Replay)


class ApiCaller(msgspec.Struct, frozen=True):
    """Who sends a request.

    Attributes:
        key: what the caller may do.
        retry_key: the header ``Idempotency-Key``; ids of events are derived from it.
    """

    key: ApiKey
    retry_key: str = ""

    @property
    def name(self) -> str:
        """The name that the log records."""
        return f"key:{self.key.id}"

    def event_id(
        self,
        request: asked.PublishedEvent | asked.StartSession | asked.SessionRequest,
        number: int = 0,
    ) -> str:
        """Return the id of an event of a number; "" for a new one (G2).

        The same header with another operation, session or person means another event.
        """
        if not self.retry_key:
            return ""
        owner = (request.agent, request.user, request.workspace, request.session)
        derivation = Derivation(
            "gateway", self.key.id, self.retry_key, type(request).__name__, *owner
        )
        return derivation.id(number)


class ToolsOffered(msgspec.Struct, frozen=True):
    """The tools that providers offer the model.

    Attributes:
        tools: OpenAI function objects: ``name``, ``description``, ``parameters``.
        writing: the names of those that change memory.
    """

    tools: list[dict[str, Any]]
    writing: list[str]


class ActDescription(msgspec.Struct, frozen=True):
    """An operator's act.

    Attributes:
        act: its name.
        meaning: what it does.
        arguments: the JSON schema of its arguments.
        needs_reason: whether a reason has to be given.
        is_harmless: whether it loses nothing and is easily undone.
    """

    act: str
    meaning: str
    arguments: dict[str, Any]
    needs_reason: bool
    is_harmless: bool


class Gateway:
    """Carries requests out. Any thread may call it.

    Args:
        bus: the bus; its spool has what is published before a request is answered (G1).
    """

    def __init__(self, bus: MemoryBus) -> None:
        self._bus = bus
        self._settings = bus.settings
        self._bus_state = BusStateCache(bus.settings, bus.clock)
        self._lock = threading.Lock()
        self._sessions: OrderedDict[tuple[Scope, str], Session] = OrderedDict()

    def scope(self, caller: ApiCaller, request: asked.OwnedRequest) -> Scope:
        """Return whose memory a request is about.

        Raises:
            NotAllowed: the caller's key does not reach it.
        """
        settings = self._settings
        defaults = Scope(
            agent=settings.agent,
            user=settings.user,
            workspace=settings.workspace,
            platform=settings.platform,
        )
        return caller.key.scope(defaults, request.scope())

    # -- events -----------------------------------------------------------------------------------

    def publish(self, caller: ApiCaller, request: asked.Publish) -> asked.Published:
        """Publish events."""
        receipts = [
            self._publish_event(caller, item, item.id or caller.event_id(item, number))
            for number, item in enumerate(request.events)
        ]
        waits = request.level != "spooled"
        reached = self._bus.flush(request.level, request.timeout) if waits else True
        if waits and reached:
            receipts = [
                msgspec.structs.replace(receipt, level=request.level) for receipt in receipts
            ]
        return asked.Published(tuple(receipts), reached)

    def _publish_event(
        self, caller: ApiCaller, item: asked.PublishedEvent, event_id: str
    ) -> Receipt:
        session, at = self._session(self.scope(caller, item), item.session), item.at or None
        match item.event:
            case TurnStarted() as event:
                return session.turn_started(**asdict(event), event_id=event_id, at=at)
            case TurnCompleted() as event:
                fields = asdict(event) | {"ordinal": None if event.ordinal < 0 else event.ordinal}
                del fields["recalled"]  # the bus itself knows what it gave to the prompt
                return session.turn_completed(**fields, event_id=event_id, at=at)
            case MemoryWritten() as event:
                return session.memory_written(**asdict(event), event_id=event_id, at=at)
            case ContextCompressing(messages=messages, compression_count=count):
                return session.compressing(messages, compression_count=count, at=at)
            case Delegated() as event:
                return session.delegated(**asdict(event), event_id=event_id, at=at)
            case SessionEnded() as event:
                return session.ended(**asdict(event), event_id=event_id, at=at)

    # -- sessions ---------------------------------------------------------------------------------

    def start_session(self, caller: ApiCaller, request: asked.StartSession) -> asked.SessionPlace:
        """Start a session, or continue one."""
        scope = self.scope(caller, request)
        session = self._open_session(
            scope,
            request.session or caller.event_id(request) or None,
            title=request.title,
            agent_context=request.agent_context,
            details=request.details,
        )
        return self._place(session)

    def _open_session(self, scope: Scope, session_id: str | None, **details: Any) -> Session:
        return self._bus.session(
            session_id,
            agent=scope.agent,
            user=scope.user,
            workspace=scope.workspace,
            platform=scope.platform,
            **details,
        )

    def branch(self, caller: ApiCaller, request: asked.BranchSession) -> asked.SessionPlace:
        """Fork a conversation."""
        new_id = request.new_id or caller.event_id(request) or None
        return self._place(self.session(caller, request).branch(new_id, title=request.title))

    def switch(self, caller: ApiCaller, request: asked.SwitchSession) -> asked.SessionPlace:
        """Continue a conversation under another id."""
        switched = self.session(caller, request).switched_to(
            request.new_id,
            reason=request.reason,
            reset=request.reset,
            event_id=caller.event_id(request),
        )
        return self._place(switched)

    def compress(self, caller: ApiCaller, request: asked.CompressSession) -> asked.SessionPlace:
        """Continue a conversation after its window was compressed."""
        session, step = self.session(caller, request), caller.event_id(request)
        return self._place(session.compressed(request.new_id or None, event_id=step))

    def undo(self, caller: ApiCaller, request: asked.UndoEvents) -> asked.SessionPlace:
        """Take back what was said last."""
        session, step = self.session(caller, request), caller.event_id(request)
        return self._place(session.undo(*request.events, event_id=step))

    def session(self, caller: ApiCaller, request: asked.SessionRequest) -> Session:
        """Return the session that a request names.

        Raises:
            NotAllowed: the caller's key does not reach it.
        """
        return self._session(self.scope(caller, request), request.session)

    def _session(self, scope: Scope, session_id: str) -> Session:
        """Return a session, which remembers the topic of its last prompt."""
        with self._lock:
            session = self._sessions.get((scope, session_id))
            if session is not None:
                self._sessions.move_to_end((scope, session_id))
                return session
        session = self._open_session(scope, session_id, warm=False)
        self._keep(session)
        return session

    def _keep(self, session: Session) -> None:
        with self._lock:
            self._sessions[session.scope, session.id] = session
            while len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)

    def _place(self, session: Session) -> asked.SessionPlace:
        self._keep(session)
        return asked.SessionPlace(session.ref, session.scope)

    def read_transcript(
        self, caller: ApiCaller, request: asked.ReadTranscript
    ) -> asked.TranscriptRead:
        """Publish what the new lines of a host's transcript tell."""
        session = self.session(caller, request)
        session, read = transcripts.publish(session, request, self._settings)
        self._keep(session)
        return read

    # -- recall -----------------------------------------------------------------------------------

    def prefetch(self, caller: ApiCaller, request: asked.Prefetch) -> asked.Block:
        """Return the memory block of a prompt."""
        session = self.session(caller, request)
        wait = None if request.wait < 0 else request.wait
        return asked.Block(session.prefetch(request.query, known=request.known, wait=wait))

    def queue_prefetch(self, caller: ApiCaller, request: asked.QueuePrefetch) -> None:
        """Ask for memories ahead of the next turn."""
        self.session(caller, request).queue_prefetch(request.query, request.answer)

    def system_prompt(self, caller: ApiCaller, request: asked.SessionRequest) -> asked.Block:
        """Return what providers add to a session's system prompt."""
        return asked.Block(self.session(caller, request).system_prompt())

    def contribute(self, caller: ApiCaller, request: asked.Contribute) -> asked.Block:
        """Publish what is about to leave the window, and return what providers want kept."""
        session = self.session(caller, request)
        text = session.contributions(
            request.messages,
            compression_count=request.compression_count,
            timeout=request.timeout,
        )
        return asked.Block(text)

    def recall(self, caller: ApiCaller, request: asked.RecallQuery) -> RecallAnswer:
        """Ask every provider now."""
        scope = self.scope(caller, request)
        return self._bus.recall(
            request.question,
            agent=scope.agent,
            user=scope.user,
            workspace=scope.workspace,
            session=request.session or None,
            providers=request.providers or None,
            budget=request.budget or None,
            timeout=request.timeout,
            as_of=request.as_of or None,
        )

    # -- tools ------------------------------------------------------------------------------------

    def tools(self, caller: ApiCaller, request: asked.Nothing) -> ToolsOffered:
        """Return the tools that providers offer the model."""
        pairs = self._bus.tools().pairs()
        writing = [tool.offered for tool, _ in pairs if tool.writes]
        return ToolsOffered([dict(schema) for _, schema in pairs], writing)

    def call_tool(self, caller: ApiCaller, request: asked.CallTool) -> dict[str, Any]:
        """Call a provider's tool for the model."""
        return self.session(caller, request).call_tool(
            request.tool,
            request.arguments,
            timeout=request.timeout,
            event_id=request.id or caller.event_id(request),
        )

    # -- memories ---------------------------------------------------------------------------------

    def memories(self, caller: ApiCaller, request: asked.ListMemories) -> Memories:
        """List what a provider keeps of a person."""
        scope = self.scope(caller, request)
        owner = RecallRequest(
            query="", agent=scope.agent, user=scope.user, workspace=scope.workspace
        )
        return list_memories(
            self._settings,
            request.provider or first_browsable(self._settings),
            owner,
            skip=request.skip,
            containing=request.containing,
            most=request.limit,
        )

    def correct_memory(self, caller: ApiCaller, request: asked.CorrectMemoryOf) -> AmendmentResult:
        """Correct a memory."""
        return self._amend(caller, request, CorrectMemory, request.content)

    def delete_memory(self, caller: ApiCaller, request: asked.DeleteMemoryOf) -> AmendmentResult:
        """Delete a memory, and all others from the same event."""
        return self._amend(caller, request, DeleteMemory)

    def _amend(
        self,
        caller: ApiCaller,
        request: asked.DeleteMemoryOf,
        action: type[CorrectMemory | DeleteMemory],
        content: str = "",
    ) -> AmendmentResult:
        event = request.event.lower()
        self._check_reach(caller, event)
        act = action(
            event=event,
            provider=request.provider or first_browsable(self._settings),
            text=request.text,
            content=content,
            reason=request.reason,
        )
        return perform(act, self._ground(caller, request.wait))

    def _check_reach(self, caller: ApiCaller, event: str) -> None:
        """Raise `MissingEvent` if the caller's key does not reach an event's owner."""
        if not caller.key.reaches(find_event(self._settings, event).scope):
            raise MissingEvent(f"there is no event {event}")

    def forget(self, caller: ApiCaller, request: asked.ForgetOwner) -> PlannedErasure | Erasure:
        """Erase a person's memories of every event up to now."""
        scope = self.scope(caller, request)
        act = Forget(
            user=scope.user, agent=scope.agent, workspace=scope.workspace, reason=request.reason
        )
        ground = self._ground(caller, request.wait)
        return perform(act, ground) if request.confirm else act.plan(ground)

    # -- operators --------------------------------------------------------------------------------

    def acts(self, caller: ApiCaller, request: asked.Nothing) -> list[ActDescription]:
        """Return the acts of operators."""
        return [_describe(name, action) for name, action in sorted(remote_acts().items())]

    def act(self, caller: ApiCaller, request: asked.ActRequest) -> Any:
        """Carry out an operator's act, or return its plan."""
        acts = remote_acts()
        if request.act not in acts:
            raise ConfigError(
                f"there is no act {request.act[:100]!r}; there are: {', '.join(acts)}"
            )
        action = acts[request.act]
        unknown = request.arguments.keys() - {field.name for field in fields(action)}
        if unknown:
            raise ConfigError(f"{request.act} has no argument {', '.join(sorted(unknown))[:100]}")
        act = msgspec.convert({**request.arguments, "reason": request.reason}, prepared(action))
        ground = self._ground(caller, request.wait)
        confirmed = request.confirm or act.is_harmless
        return perform(act, ground) if confirmed else act.plan(ground)

    def insights(self, caller: ApiCaller, request: asked.ReadInsights) -> Insights:
        """Count what agents did."""
        scope, key = self.scope(caller, request), caller.key
        if key.workspace != ANY:
            raise NotAllowed("insights count every workspace: they need a key with --workspace '*'")
        return self._bus.insights(
            days=request.days,
            agent=(request.agent or None) if key.agent == ANY else scope.agent,
            user=(request.user or None) if ANY in key.users else scope.user,
            platform=request.platform or None,
            zone=request.zone,
        )

    def health(self, caller: ApiCaller, request: asked.Nothing) -> Verdict:
        """Return the verdict on the bus, with its findings."""
        return self._bus_state.read().verdict

    def _ground(self, caller: ApiCaller, wait: float) -> Ground:
        return Ground(self._settings, caller.name, wait)


def remote_acts() -> dict[str, type[Action[Any, Any]]]:
    """Return the acts that are carried out from afar, by name.

    Memories have operations of their own; the other acts left out need files or the terminal of the
    operator's machine.
    """
    acts = (each for each in ACTIONS if each not in _NOT_REMOTE)
    return {each.title.replace(" ", "-"): each for each in acts}


def _describe(name: str, action: type[Action[Any, Any]]) -> ActDescription:
    schema = msgspec.json.schema(action)
    return ActDescription(
        act=name,
        meaning=(action.__doc__ or "").partition("\n")[0],
        arguments=schema,
        needs_reason=action.needs_reason,
        is_harmless=action.is_harmless,
    )
