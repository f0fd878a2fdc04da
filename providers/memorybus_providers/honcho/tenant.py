"""One owner's workspace: two peers, their sessions, what they said, what is held of them."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice

from honcho import Honcho, Peer, Session
from honcho.api_types import MessageCreateParams, SessionPeerConfig
from honcho.conclusions import ConclusionsView
from honcho.message import Message
from memorybus.events import StoreName

from memorybus_providers.adapters.owners import MOST, Owner, whole
from memorybus_providers.base import RecallScope
from memorybus_providers.honcho import outgoing, places
from memorybus_providers.honcho.options import Options
from memorybus_providers.honcho.service import Service

_KEPT = 512
"""Workspaces, and sessions of each, that are remembered as made; the least used go (G10)."""

_PAGE = 100


class Tenant:
    """An owner's workspace. Its requests belong into `Service.asking`.

    Attributes:
        owner: whose it is.
        honcho: its client.
        agent: the peer that is the agent.
        person: the peer that is the person.
        is_there: whether the workspace is known to be there.
    """

    def __init__(self, honcho: Honcho, owner: Owner, options: Options) -> None:
        """Ask nothing yet."""
        self.owner, self.honcho = owner, honcho
        self.agent = Peer(places.agent_of(owner), honcho)
        self.person = Peer(places.person_of(owner), honcho)
        self._observer = self.agent if options.agent_observes else self.person
        self._marks = places.marks(options.prefix, owner)
        self._members: list[tuple[str, SessionPeerConfig]] = [
            (self.person.id, _watching(options.observe_person, options.person_observes)),
            (self.agent.id, _watching(options.observe_agent, options.agent_observes)),
        ]
        self.is_there = False
        self._places: OrderedDict[str, str] = OrderedDict()

    def ready(self) -> None:
        """Make the workspace, unless it is there, and note whose it is."""
        if self.is_there:
            return
        metadata = self.honcho.get_metadata()
        if not self._marks.items() <= metadata.items():
            self.honcho.set_metadata(metadata | self._marks)
        self.is_there = True

    # -- sessions ---------------------------------------------------------------------------------

    def place(self, session_id: str) -> str:
        """Return the name of the session in which a session of the bus is kept; it is made.

        That is the one which a compressed conversation began in, else its own.
        """
        found = self._places.get(session_id)
        if found is None:
            name = places.NOTES if session_id == places.NOTES else places.session_of(session_id)
            found = self._remember(session_id, self._joined(name))
        return found

    def link(self, session_id: str, told: dict[str, str], *, goes_on: str = "") -> None:
        """Note what is known of a session.

        Args:
            session_id: the session.
            told: texts by name.
            goes_on: the session of which it is the continuation, kept in the same place.
        """
        session = self.honcho.session(places.session_of(session_id), peers=list(self._members))
        known = session.metadata or {}
        wanted = dict(told)
        if goes_on and "continues" not in known:
            wanted["continues"] = self.place(goes_on)
        if not wanted.items() <= known.items():
            session.set_metadata(known | wanted)
        self._remember(session_id, _place_in(session))

    def _joined(self, name: str) -> str:
        return _place_in(self.honcho.session(name, peers=list(self._members)))

    def _remember(self, session_id: str, place: str) -> str:
        self._places[session_id] = place
        while len(self._places) > _KEPT:
            self._places.popitem(last=False)
        return place

    # -- messages ---------------------------------------------------------------------------------

    def say(self, place: str, messages: Sequence[outgoing.Said], at: int) -> None:
        """Store messages, those of a request all or none.

        Of an event that takes several requests those parts are left out which are held already.
        """
        groups = outgoing.batches(messages)
        held = 0
        if len(groups) > 1:
            held = sum(1 for _ in self.said(place, messages[0].metadata["event_id"]))
        for number, group in enumerate(groups):
            if number * outgoing.BATCH >= held:
                Session(place, self.honcho).add_messages([self._message(m, at) for m in group])

    def said(self, place: str, event_id: str) -> Iterator[Message]:
        """Yield the messages of a session that an event has left."""
        filters: dict[str, object] = {"metadata": {"event_id": event_id}}
        yield from Session(place, self.honcho).messages(filters=filters, size=_PAGE)

    def holds(self, place: str, event_id: str) -> bool:
        """Say whether all messages of an event are in a session."""
        found = list(self.said(place, event_id))
        return bool(found) and len(found) >= int(found[0].metadata.get("parts", 1))

    def take_back(self, place: str, event_ids: Sequence[str]) -> None:
        """Mark the messages of events as taken back: Honcho deletes no single message."""
        session = Session(place, self.honcho)
        for event_id in event_ids:
            for one in list(self.said(place, event_id)):
                session.update_message(one, one.metadata | {"retracted": True})

    def _message(self, said: outgoing.Said, at: int) -> MessageCreateParams:
        who = self.person if said.by_person else self.agent
        return who.message(
            said.content,
            metadata=said.metadata,
            configuration=None if said.reasoned else {"reasoning": {"enabled": False}},
            created_at=datetime.fromtimestamp(at / 1_000, UTC),
        )

    # -- what is held -----------------------------------------------------------------------------

    def held(self, store: StoreName) -> ConclusionsView:
        """Return the conclusions that stand for a store: of the person, or of the agent itself."""
        if store == "memory":
            return self.agent.conclusions
        return self._observer.conclusions_of(self.person)

    @property
    def observer(self) -> Peer:
        """Who holds something of the person: the agent, or Honcho in general."""
        return self._observer


class Tenants:
    """The workspaces of an account that begin with a prefix. May be used from several threads."""

    def __init__(self, service: Service, options: Options) -> None:
        """Know none yet."""
        self._service, self._options = service, options
        self._lock = threading.Lock()
        self._known: OrderedDict[Owner, Tenant] = OrderedDict()

    def of(self, owner: Owner) -> Tenant:
        """Return an owner's workspace, which may not be there yet."""
        with self._lock:
            found = self._known.get(owner) or self._made(owner)
            self._known[owner] = found
            self._known.move_to_end(owner)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return found

    def drop(self, owner: Owner) -> None:
        """Forget what is known of a workspace: it may be gone."""
        with self._lock:
            self._known.pop(owner, None)

    def found(self, scope: RecallScope, most: int = MOST) -> list[Tenant]:
        """Return the workspaces that are there and that a scope means, the newest, `most` at most.

        None is made by asking for it.
        """
        if own := whole(scope):
            return [tenant] if self._is_there(tenant := self.of(own), scope) else []
        found = [self._service.client(name).get_metadata() for name in self._named(scope, most)]
        return [self.of(places.owner_in(metadata)) for metadata in found]

    def _is_there(self, tenant: Tenant, scope: RecallScope) -> bool:
        tenant.is_there = tenant.is_there or any(self._named(scope, 1))
        return tenant.is_there

    def _named(self, scope: RecallScope, most: int) -> list[str]:
        filters: dict[str, object] = {"metadata": places.marks(self._options.prefix, scope)}
        root = self._service.client(self._options.prefix)
        pages = root.workspaces(filters=filters, size=min(most, _PAGE), reverse=True)
        return [str(name) for name in islice(pages, most)]

    def _made(self, owner: Owner) -> Tenant:
        workspace = places.workspace_of(self._options.prefix, owner)
        return Tenant(self._service.client(workspace), owner, self._options)


def _watching(seen: bool, sees: bool) -> SessionPeerConfig:
    return SessionPeerConfig(observe_me=seen, observe_others=sees)


def _place_in(session: Session) -> str:
    return str((session.metadata or {}).get("continues") or session.id)
