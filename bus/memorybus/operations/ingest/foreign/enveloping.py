"""Events of what a source holds, with ids that depend on the source alone; pure.

An id is derived from the source, the kind, the source's own id and the text: the same export gives
the same events whoever reads it whenever, and a memory that was changed since comes as a new one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from memorybus.agent.session_events import build_turn, memory_write
from memorybus.errors import EventError
from memorybus.events import AnyEvent, Envelope, Scope, SessionRef, SessionStarted, WriteAction
from memorybus.ids import derived_id, text_digest
from memorybus.operations.ingest.foreign.model import Kept, Parsed, Said
from memorybus.operations.ingest.ingest import RefusedInput
from memorybus.redis.keys import session_key, store_key
from memorybus.text.cleaning import check_id

AGENTS = frozenset(("assistant", "agent", "ai"))
"""Names of speakers who are agents, in sources that know no roles."""

_APART = "\n\n"
"""Between the messages of one side of a turn."""


class Owner(msgspec.Struct, frozen=True):
    """Whose the memories are.

    Attributes:
        default: who they are where the source does not tell.
        agent: the agent in every case; None for the source's.
        user: the person in every case; None for the source's.
    """

    default: Scope
    agent: str | None = None
    user: str | None = None

    def is_agent(self, person: str) -> bool:
        """Say whether what a source has as a person is an agent: the one named, or by its name."""
        return bool(person) and (person == self.agent or person in AGENTS)

    def scope(self, source: str, user: str, agent: str, workspace: str) -> Scope:
        """Return the scope of what a source says is a person's and an agent's.

        Raises:
            InvalidEvent: an id that nothing can have.
        """
        return Scope(
            agent=check_id("agent", self.agent or agent or self.default.agent),
            user=check_id("user", self.user or user or self.default.user),
            workspace=workspace or self.default.workspace,
            platform=source,
        )


class Enveloped(msgspec.Struct):
    """Events in the order of their times, and what could be none."""

    envelopes: list[Envelope] = []
    refused: list[RefusedInput] = []


def enveloped(source: str, name: str, found: Parsed, owner: Owner, at: int) -> Enveloped:
    """Return the events of what a source holds.

    Args:
        source: its name.
        name: of the file or the address, for what is refused.
        found: what it holds.
        owner: whose it is.
        at: when it happened where the source does not tell, milliseconds.
    """
    maker = _Maker(source, owner, at)
    done = Enveloped(refused=list(found.refused))
    for kept in found.kept:
        try:
            done.envelopes += maker.memory(kept)
        except EventError as error:
            done.refused.append(RefusedInput(f"{name}: {kept.id}", str(error)))
    for session, said in _sessions(found.said).items():
        try:
            done.envelopes += maker.session(session, said)
        except EventError as error:
            done.refused.append(RefusedInput(f"{name}: {session}", str(error)))
    done.envelopes.sort(key=lambda envelope: envelope.at)
    return done


class _Maker:
    """Makes the events of one source."""

    def __init__(self, source: str, owner: Owner, at: int) -> None:
        self._source = source
        self._owner = owner
        self._at = at

    def memory(self, kept: Kept) -> Iterator[Envelope]:
        """Yield the write of a memory, and its removal if it has ceased to hold."""
        kept = self._with_agent(kept)
        scope = self._owner.scope(self._source, kept.user, kept.agent, kept.workspace)
        key = store_key(kept.store, scope)
        ref = _ref(self._source, kept.session or "memories")
        at = self._at if kept.at is None else kept.at
        came = _provenance(self._source, kept)
        action: WriteAction = "replace" if kept.replaces else "add"
        write = memory_write(action, kept.store, kept.text, kept.replaces, came)
        yield self._envelope(write, key, scope, ref, at, "memory", kept.id, text_digest(kept.text))
        if kept.until is not None:
            gone = memory_write("remove", kept.store, "", kept.text, came)
            yield self._envelope(gone, key, scope, ref, max(kept.until, at), "removal", kept.id)

    def _with_agent(self, kept: Kept) -> Kept:
        """Return a memory about an agent as the agent's own note."""
        if not self._owner.is_agent(kept.user):
            return kept
        return msgspec.structs.replace(kept, user="", agent=kept.user, store="memory")

    def _spoken(self, one: Said) -> Said:
        """Return a message of an agent as such."""
        if not self._owner.is_agent(one.user):
            return one
        return msgspec.structs.replace(one, user="", agent=one.user, speaker="assistant")

    def session(self, session: str, said: Sequence[Said]) -> Iterator[Envelope]:
        """Yield a session's turns; in a shared one, each is of the person who spoke."""
        said = [self._spoken(one) for one in said]
        person = next((one.user for one in said if one.user), "")
        agent = next((one.agent for one in said if one.agent), "")
        workspace = next((one.workspace for one in said if one.workspace), "")
        counts: dict[Scope, int] = {}
        ref = _ref(self._source, session)
        for messages in _turns(said):
            user = messages[0].user or person
            scope = self._owner.scope(self._source, user, agent, workspace)
            key, at = session_key(scope, ref.root), self._time(messages)
            if scope not in counts:
                began = SessionStarted(platform=self._source)
                whose = (scope.agent, scope.user)
                yield self._envelope(began, key, scope, ref, at, "session", session, *whose)
            ordinal = counts[scope] = counts.get(scope, -1) + 1
            own = [one.id for one in messages]
            yield self._envelope(_turn(messages, ordinal), key, scope, ref, at, "turn", *own)

    def _time(self, messages: Sequence[Said]) -> int:
        return next((one.at for one in messages if one.at is not None), self._at)

    def _envelope(
        self,
        event: AnyEvent,
        key: str,
        scope: Scope,
        ref: SessionRef,
        at: int,
        *own: str,
    ) -> Envelope:
        return Envelope(
            id=derived_id("ingest", self._source, *own),
            key=key,
            scope=scope,
            session=ref,
            at=at,
            v=event.version,
            event=event,
        )


def _ref(source: str, session: str) -> SessionRef:
    """Return a session under a name that no session of an agent here has."""
    name = check_id("session_id", f"{source}:{session}")
    return SessionRef(id=name, root=name)


def _provenance(source: str, kept: Kept) -> Mapping[str, str]:
    told = {"origin": "import", "source": source, "source_id": kept.id, "kind": kept.kind}
    return {name: value for name, value in told.items() if value}


def _sessions(said: Iterable[Said]) -> Mapping[str, Sequence[Said]]:
    """Return messages by session, in the order of their times where all have one."""
    found: dict[str, list[Said]] = {}
    for one in said:
        found.setdefault(one.session, []).append(one)
    for messages in found.values():
        if all(one.at is not None for one in messages):
            messages.sort(key=lambda one: one.at or 0)
    return found


def _turns(said: Sequence[Said]) -> Iterator[list[Said]]:
    """Part messages before each of a person's; what stands before the first is a turn, too."""
    group: list[Said] = []
    for one in said:
        if one.speaker == "user" and group:
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _turn(messages: Sequence[Said], ordinal: int) -> AnyEvent:
    names = {one.speaker: one.name for one in reversed(messages) if one.name}
    return build_turn(
        _side(messages, "user"),
        _side(messages, "assistant"),
        (),
        ordinal,
        user_name=names.get("user", ""),
        assistant_name=names.get("assistant", ""),
    )


def _side(messages: Sequence[Said], speaker: str) -> str:
    return _APART.join(one.text for one in messages if one.speaker == speaker)
