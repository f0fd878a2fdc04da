"""Makes events of a source's memories and messages, with ids that depend on the source; pure.

An id is derived from the source, the kind, the source's own id and the text. So the same export
always gives the same events, and a memory that was changed since then gives a new one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from memorybus.agent.session_events import memory_write
from memorybus.errors import EventError
from memorybus.events import (
    AnyEvent,
    Envelope,
    Scope,
    SessionRef,
    SessionStarted,
    TurnCompleted,
    WriteAction,
)
from memorybus.ids import derived_id, text_digest
from memorybus.redis.keys import session_key, store_key
from memorybus.text.cleaning import check_id, clean_fields

from memorybus_console.operations.ingest.foreign.records import (
    ForeignMemory,
    ForeignMessage,
    ParsedExport,
)
from memorybus_console.operations.ingest.report import LeftOut, RefusedInput

AGENTS = frozenset(("assistant", "agent", "ai"))
"""Names of speakers that count as agents in sources without roles."""

_MESSAGE_SEPARATOR = "\n\n"
"""Separates the messages of one side of a turn."""


class ImportOwner(msgspec.Struct, frozen=True):
    """The owner of imported memories.

    Attributes:
        default: the scope of memories for which the source names no owner.
        agent: the agent for all memories; None for the agent that the source names.
        user: the person for all memories; None for the person that the source names.
        user_from_name: whether a message of nobody whom the source identifies belongs to the person
            whom it names.
    """

    default: Scope
    agent: str | None = None
    user: str | None = None
    user_from_name: bool = False

    def person(self, message: ForeignMessage) -> str:
        """Return the person of the source who wrote a message; "" if it is not known."""
        by_name = self.user_from_name and message.speaker == "user"
        return message.user or (message.name if by_name else "")

    def is_agent(self, person: str) -> bool:
        """Whether a person of the source is an agent: the given agent, or one of `AGENTS`."""
        return bool(person) and (person == self.agent or person in AGENTS)

    def scope(self, source: str, user: str, agent: str, workspace: str) -> Scope:
        """Return the scope for the person, agent and workspace of a source; "" is unknown.

        Raises:
            InvalidEvent: an id is not valid.
        """
        return Scope(
            agent=check_id("agent", self.agent or agent or self.default.agent),
            user=check_id("user", self.user or user or self.default.user),
            workspace=workspace or self.default.workspace,
            platform=source,
        )


class EnvelopedExport(msgspec.Struct):
    """Events in the order of their times, and the records of which no event could be made.

    Attributes:
        untimed: the ids of those for which the source gives no time.
    """

    envelopes: list[Envelope] = []
    untimed: set[str] = set()
    left_out: LeftOut = msgspec.field(default_factory=LeftOut)

    @property
    def refused(self) -> list[RefusedInput]:
        """The first records that are refused, and why."""
        return self.left_out.named


def build_envelopes(
    source: str, name: str, export: ParsedExport, owner: ImportOwner, at: int, now: int
) -> EnvelopedExport:
    """Return the events of a parsed export.

    Args:
        name: the file or the address, for messages about refused records.
        at: the time of records without one, milliseconds.
        now: the present, milliseconds: a memory that ends later is true and stays.
    """
    maker = _EnvelopeMaker(source, owner, at)
    done = EnvelopedExport(untimed=maker.untimed, left_out=export.left_out)
    for kept in export.memories:
        done.left_out.drop("ends in the future", (kept.until or 0) > now)
        try:
            done.envelopes += maker.memory_events(kept, now)
        except EventError as error:
            done.left_out.refuse(RefusedInput(f"{name}: {kept.id}", str(error)))
    for session, messages in _group_by_session(export.messages).items():
        try:
            done.envelopes += maker.session(session, messages)
        except EventError as error:
            done.left_out.refuse(RefusedInput(f"{name}: {session}", str(error)))
    done.envelopes.sort(key=lambda envelope: envelope.at)
    return done


class _EnvelopeMaker:
    """Makes the events of one source."""

    def __init__(self, source: str, owner: ImportOwner, at: int) -> None:
        self._source = source
        self._owner = owner
        self._at = at
        self.untimed: set[str] = set()

    def memory_events(self, kept: ForeignMemory, now: int) -> Iterator[Envelope]:
        """Yield the write of a memory, and its removal if it is no longer true."""
        kept = self._with_agent_owner(kept)
        scope = self._owner.scope(self._source, kept.user, kept.agent, kept.workspace)
        key = store_key(kept.store, scope)
        ref = _session_ref(self._source, kept.session or "memories")
        at = self._at if kept.at is None else kept.at
        provenance = _provenance_of(self._source, kept)
        action: WriteAction = "replace" if kept.replaces else "add"
        write = memory_write(action, kept.store, kept.text, kept.replaces, provenance)
        yield self._envelope(
            write, key, scope, ref, kept.at, "memory", kept.id, text_digest(kept.text)
        )
        if kept.until is not None and kept.until <= now:
            removal = memory_write("remove", kept.store, "", kept.text, provenance)
            yield self._envelope(removal, key, scope, ref, max(kept.until, at), "removal", kept.id)

    def _with_agent_owner(self, kept: ForeignMemory) -> ForeignMemory:
        """Return the memory, turned into the agent's own note if its person is an agent."""
        if not self._owner.is_agent(kept.user):
            return kept
        return msgspec.structs.replace(kept, user="", agent=kept.user, store="memory")

    def _with_agent_role(self, message: ForeignMessage) -> ForeignMessage:
        if not self._owner.is_agent(message.user):
            return message
        return msgspec.structs.replace(message, user="", agent=message.user, speaker="assistant")

    def session(self, session: str, messages: Sequence[ForeignMessage]) -> Iterator[Envelope]:
        """Yield a session's turns; in a shared session a turn belongs to the person who spoke."""
        messages = [self._with_agent_role(message) for message in messages]
        person = next(filter(None, map(self._owner.person, messages)), "")
        agent = next((message.agent for message in messages if message.agent), "")
        workspace = next((message.workspace for message in messages if message.workspace), "")
        counts: dict[Scope, int] = {}
        ref = _session_ref(self._source, session)
        for turn_messages in _group_by_turn(messages):
            user = self._owner.person(turn_messages[0]) or person
            scope = self._owner.scope(self._source, user, agent, workspace)
            key = session_key(scope, ref.root)
            at = next((message.at for message in turn_messages if message.at is not None), None)
            if scope not in counts:
                began = SessionStarted(platform=self._source)
                owner = (scope.agent, scope.user)
                yield self._envelope(began, key, scope, ref, at, "session", session, *owner)
            ordinal = counts[scope] = counts.get(scope, -1) + 1
            turn = _build_turn(turn_messages, ordinal)
            own = [text_digest(text) for text in (turn.user, turn.assistant)]
            own += [message.id for message in turn_messages]
            yield self._envelope(turn, key, scope, ref, at, "turn", *own)

    def _envelope(
        self,
        event: AnyEvent,
        key: str,
        scope: Scope,
        ref: SessionRef,
        at: int | None,
        *own: str,
    ) -> Envelope:
        event_id = derived_id("ingest", self._source, *own)
        if at is None:
            self.untimed.add(event_id)
        return Envelope(
            id=event_id,
            key=key,
            scope=scope,
            session=ref,
            at=self._at if at is None else at,
            v=event.version,
            event=event,
        )


def _session_ref(source: str, session: str) -> SessionRef:
    """Return a reference to a session whose name no session of an agent has."""
    name = check_id("session_id", f"{source}:{session}")
    return SessionRef(id=name, root=name)


def _provenance_of(source: str, kept: ForeignMemory) -> Mapping[str, str]:
    fields = {"origin": "import", "source": source, "source_id": kept.id, "kind": kept.kind}
    return {name: value for name, value in fields.items() if value}


def _group_by_session(messages: Iterable[ForeignMessage]) -> Mapping[str, Sequence[ForeignMessage]]:
    """Return messages by session, in the order of their times if all messages have one."""
    found: dict[str, list[ForeignMessage]] = {}
    for message in messages:
        found.setdefault(message.session, []).append(message)
    for group in found.values():
        if all(message.at is not None for message in group):
            group.sort(key=lambda message: message.at or 0)
    return found


def _group_by_turn(messages: Sequence[ForeignMessage]) -> Iterator[list[ForeignMessage]]:
    """Begin a turn at each message of a person; messages before the first are a turn, too."""
    group: list[ForeignMessage] = []
    for message in messages:
        if message.speaker == "user" and group:
            yield group
            group = []
        group.append(message)
    if group:
        yield group


def _build_turn(messages: Sequence[ForeignMessage], ordinal: int) -> TurnCompleted:
    names = {message.speaker: message.name for message in reversed(messages) if message.name}
    texts = {
        "user": _join_side(messages, "user"),
        "assistant": _join_side(messages, "assistant"),
        "user_name": names.get("user", ""),
        "assistant_name": names.get("assistant", ""),
        "source_id": messages[0].id,
    }
    return TurnCompleted(**clean_fields(texts), ordinal=ordinal)


def _join_side(messages: Sequence[ForeignMessage], speaker: str) -> str:
    return _MESSAGE_SEPARATOR.join(
        message.text for message in messages if message.speaker == speaker
    )
