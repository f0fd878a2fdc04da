"""The workspace of one owner: two peers, their sessions, messages and conclusions."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice

from honcho import Honcho, Peer, Session
from honcho.api_types import MessageCreateParams, SessionPeerConfig
from honcho.conclusions import ConclusionsView
from honcho.message import Message
from memorybus.events import MemoryWritten, StoreName

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.honcho.messages import (
    MAX_MESSAGES,
    NOTES,
    OutgoingMessage,
    agent_of,
    owner_from_metadata,
    owner_metadata,
    person_of,
    plan_changes,
    session_of,
    split_into_batches,
    workspace_of,
)
from memorybus_providers.honcho.options import HonchoOptions
from memorybus_providers.honcho.service import HonchoService
from memorybus_providers.owners import MAX_OWNERS, Owner, single_owner

_MAX_KEPT = 512  # the most workspaces that are remembered, and the most sessions of each (G10)

_PAGE = 100


class Tenant:
    """An owner's workspace. Its requests must be made within `HonchoService.requests_within`.

    Attributes:
        owner: the owner.
        honcho: the workspace's client.
    """

    def __init__(self, honcho: Honcho, owner: Owner, options: HonchoOptions) -> None:
        self.owner, self.honcho = owner, honcho
        self.agent = Peer(agent_of(owner), honcho)  # the peer that is the agent
        self.person = Peer(person_of(owner), honcho)  # the peer that is the person
        self._observer = self.agent if options.agent_observes else self.person
        self._owner_metadata = owner_metadata(options.prefix, owner)
        self._members: list[tuple[str, SessionPeerConfig]] = [
            (self.person.id, _peer_config(options.observe_person, options.person_observes)),
            (self.agent.id, _peer_config(options.observe_agent, options.agent_observes)),
        ]
        self.is_there = False  # whether the workspace is known to exist
        self._places: OrderedDict[str, str] = OrderedDict()

    def ensure_exists(self) -> None:
        """Make the workspace if it is missing, and store its owner in its metadata."""
        if self.is_there:
            return
        metadata = self.honcho.get_metadata()
        if not self._owner_metadata.items() <= metadata.items():
            self.honcho.set_metadata(metadata | self._owner_metadata)
        self.is_there = True

    # -- sessions ---------------------------------------------------------------------------------

    def place(self, session_id: str) -> str:
        """Return the name of Honcho's session in which a session of the bus is kept.

        Honcho's session is made if it is missing. A compressed conversation stays in the session in
        which it began; every other session has its own.
        """
        found = self._places.get(session_id)
        if found is None:
            name = NOTES if session_id == NOTES else session_of(session_id)
            session = self.honcho.session(name, peers=list(self._members))
            found = self._remember_place(session_id, _place_of(session))
        return found

    def link_session(
        self, session_id: str, metadata: dict[str, str], *, continues: str = ""
    ) -> None:
        """Store metadata of a session.

        Args:
            continues: the session that it continues, in whose place it is then kept; "" for none.
        """
        session = self.honcho.session(session_of(session_id), peers=list(self._members))
        known = session.metadata or {}
        wanted = dict(metadata)
        if continues and "continues" not in known:
            wanted["continues"] = self.place(continues)
        if not wanted.items() <= known.items():
            session.set_metadata(known | wanted)
        self._remember_place(session_id, _place_of(session))

    def _remember_place(self, session_id: str, place: str) -> str:
        self._places[session_id] = place
        while len(self._places) > _MAX_KEPT:
            self._places.popitem(last=False)
        return place

    # -- messages ---------------------------------------------------------------------------------

    def store_messages(self, place: str, messages: Sequence[OutgoingMessage], at: int) -> None:
        """Store the messages of an event, in as many requests as needed.

        A request stores all of its messages or none. If the event takes several requests, those
        whose messages are stored already are left out.
        """
        groups = split_into_batches(messages)
        stored = 0
        if len(groups) > 1:
            stored = sum(1 for _ in self.messages_of_event(place, messages[0].metadata["event_id"]))
        for number, group in enumerate(groups):
            if number * MAX_MESSAGES >= stored:
                Session(place, self.honcho).add_messages([self._message(m, at) for m in group])

    def messages_of_event(self, place: str, event_id: str) -> Iterator[Message]:
        """Yield the messages of a session that came from an event."""
        filters: dict[str, object] = {"metadata": {"event_id": event_id}}
        yield from Session(place, self.honcho).messages(filters=filters, size=_PAGE)

    def holds_event(self, place: str, event_id: str) -> bool:
        """Return whether all messages of an event are in a session."""
        found = list(self.messages_of_event(place, event_id))
        return bool(found) and len(found) >= int(found[0].metadata.get("parts", 1))

    def retract_messages(self, place: str, event_ids: Sequence[str]) -> None:
        """Mark the messages of events as retracted, since Honcho cannot delete single messages."""
        session = Session(place, self.honcho)
        for event_id in event_ids:
            for one in list(self.messages_of_event(place, event_id)):
                session.update_message(one, one.metadata | {"retracted": True})

    def _message(self, message: OutgoingMessage, at: int) -> MessageCreateParams:
        speaker = self.person if message.by_person else self.agent
        return speaker.message(
            message.content,
            metadata=message.metadata,
            configuration=None if message.reasoned else {"reasoning": {"enabled": False}},
            created_at=datetime.fromtimestamp(at / 1_000, UTC),
        )

    # -- conclusions ------------------------------------------------------------------------------

    def conclusions_of(self, store: StoreName) -> ConclusionsView:
        """Return the conclusions for a store: about the agent itself, or else about the person."""
        if store == "memory":
            return self.agent.conclusions
        return self._observer.conclusions_of(self.person)

    def apply_write(self, event: MemoryWritten, ctx: HookContext) -> tuple[int, int]:
        """Apply a write to a store, as conclusions of the session of notes.

        Conclusions of Honcho have no metadata, and it stores the same one twice. So a write
        compares texts and makes or deletes only those that differ; a repeated write changes
        nothing. Then a message without the text records that the event is applied.

        Returns:
            How many conclusions were made, and how many deleted.
        """
        self.place(NOTES)
        view = self.conclusions_of(event.store)
        listed = view.list(session=NOTES, size=_PAGE)
        new, gone = plan_changes(event, {str(one.id): str(one.content) for one in listed})
        if new:
            view.create([{"content": text, "session_id": NOTES} for text in new])
        for conclusion in gone:
            view.delete(conclusion)
        metadata = {"event_id": ctx.event_id, "parts": 1, "part": 0}
        applied = OutgoingMessage(
            by_person=False,
            content=f"{event.action} {event.store}",
            metadata=metadata,
            reasoned=False,
        )
        self.store_messages(NOTES, [applied], ctx.at)
        return len(new), len(gone)

    @property
    def observer(self) -> Peer:
        """The peer whose conclusions about the person are used: the agent, or the person itself.

        The person's own peer has what Honcho concludes in general.
        """
        return self._observer


class Tenants:
    """The workspaces with the prefix of the options. May be used from several threads."""

    def __init__(self, service: HonchoService, options: HonchoOptions) -> None:
        self._service, self._options = service, options
        self._lock = threading.Lock()
        self._known: OrderedDict[Owner, Tenant] = OrderedDict()

    def tenant_of(self, owner: Owner) -> Tenant:
        """Return an owner's workspace, which may not exist yet."""
        with self._lock:
            found = self._known.get(owner) or self._make_tenant(owner)
            self._known[owner] = found
            self._known.move_to_end(owner)
            while len(self._known) > _MAX_KEPT:
                self._known.popitem(last=False)
        return found

    def drop(self, owner: Owner) -> None:
        """Forget what is known of a workspace, which may have been deleted."""
        with self._lock:
            self._known.pop(owner, None)

    def find(self, scope: RecallScope, most: int = MAX_OWNERS) -> list[Tenant]:
        """Return the existing workspaces of a scope, at most `most`, the newest first.

        To look for a workspace does not make it.
        """
        if own := single_owner(scope):
            return [tenant] if self._is_there(tenant := self.tenant_of(own), scope) else []
        names = self._workspace_names(scope, most)
        found = [self._service.client(name).get_metadata() for name in names]
        return [self.tenant_of(owner_from_metadata(metadata)) for metadata in found]

    def _is_there(self, tenant: Tenant, scope: RecallScope) -> bool:
        tenant.is_there = tenant.is_there or any(self._workspace_names(scope, 1))
        return tenant.is_there

    def _workspace_names(self, scope: RecallScope, most: int) -> list[str]:
        filters: dict[str, object] = {"metadata": owner_metadata(self._options.prefix, scope)}
        root = self._service.client(self._options.prefix)
        pages = root.workspaces(filters=filters, size=min(most, _PAGE), reverse=True)
        return [str(name) for name in islice(pages, most)]

    def _make_tenant(self, owner: Owner) -> Tenant:
        workspace = workspace_of(self._options.prefix, owner)
        return Tenant(self._service.client(workspace), owner, self._options)


def _peer_config(is_observed: bool, observes: bool) -> SessionPeerConfig:
    return SessionPeerConfig(observe_me=is_observed, observe_others=observes)


def _place_of(session: Session) -> str:
    return str((session.metadata or {}).get("continues") or session.id)
