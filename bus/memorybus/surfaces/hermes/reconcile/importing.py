"""Publishes what a survey found, under ids of its own, no faster than the log takes it.

A second run adds nothing, wherever the first ended: what it published is in the spool, the next
run sends that first and finds it in the log; and the ids are made of what is published, so that
even an event sent twice enters the log once (G2).
"""

from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.agent.session_events import session_details as details
from memorybus.agent.session_events import turn as turn_event
from memorybus.clock import Clock
from memorybus.errors import EventError
from memorybus.events import AnyEvent, SessionEnded, SessionRef, SessionStarted
from memorybus.ids import derived_id
from memorybus.lineage import graph
from memorybus.lineage.identity import identity_of
from memorybus.operations.ingest.paced import Paced, Waiting
from memorybus.surfaces.hermes.reconcile.history_index import pair
from memorybus.surfaces.hermes.reconcile.survey import Found
from memorybus.surfaces.hermes.transcripts.scaffolding import is_by_host
from memorybus.surfaces.hermes.transcripts.stored_turns import StoredTurn
from memorybus.text.cleaning import clean_text


class Importer:
    """Publishes stored turns through a bus.

    Args:
        bus: where to.
        clock: time.
        on_wait: called while the log is waited for.

    Attributes:
        paced: how fast it publishes.
    """

    def __init__(self, bus: MemoryBus, clock: Clock, on_wait: Waiting) -> None:
        """Publish nothing yet."""
        self._bus = bus
        self.paced = Paced(bus, clock, on_wait)
        self.published = 0
        self.refused: list[str] = []

    def begin(self, found: Found) -> Session | None:
        """Return the session of what was found; one that the log does not know is begun there.

        None if the bus refuses it (an id that it cannot take), which is noted.
        """
        try:
            session = self._session(found)
            if found.is_new:
                at = found.stored.started_at
                self._publish(session, _beginning(found, session.ref), ("begin",), at)
        except EventError as error:
            self.refused.append(f"{found.stored.id[:80]}: {error}")
            return None
        return session

    def _session(self, found: Found) -> Session:
        """Return the session; what this host notes of it is a live plugin's, and stays."""
        ref = found.place.ref
        if self._bus.sessions.get(found.scope, ref.id) is None:
            return self._bus.adopt(found.scope, ref)
        return Session(self._bus, found.scope, ref)

    def turn(self, session: Session, turn: StoredTurn, model: str) -> bool:
        """Publish a turn with its own time; False if the bus refuses it, which is noted."""
        try:
            mark = pair(turn.user, turn.assistant).hex()
            self._publish(session, _event(turn, model), ("turn", turn.row, mark), turn.at)
        except EventError as error:
            self.refused.append(f"{session.id}: message {turn.row}: {error}")
            return False
        self.published += 1
        return True

    def undo(self, session: Session, found: Found) -> None:
        """Publish that turns were taken back; the session stays in its epoch, a live plugin's."""
        event = graph.switched(session.ref, session.ref, "rewind", tuple(found.undone))
        self._publish(session, event, ("undo", *found.undone), found.undone_at)

    def end(self, session: Session, found: Found) -> None:
        """Publish that a session is over."""
        at = found.stored.ended_at
        event = SessionEnded(reason=clean_text(found.stored.end_reason))
        self._publish(session, event, ("end", at), at)

    def _publish(
        self, session: Session, event: AnyEvent, parts: tuple[str | int, ...], at: int
    ) -> None:
        event_id = derived_id("reconcile", *identity_of(session.scope, session.id), *parts)
        self.paced.accepted(lambda: session.publish(event, event_id, at))

    def finish(self) -> None:
        """Wait until the log has everything.

        Raises:
            Stalled: it took nothing for a minute; what is published stays spooled.
        """
        self.paced.finish()


def _event(turn: StoredTurn, model: str) -> AnyEvent:
    return turn_event(
        turn.user,
        turn.assistant,
        turn.messages,
        ordinal=None,
        synthetic=is_by_host(turn.user),
        user_name="",
        assistant_name="",
        model=model,
        tokens_in=0,
        tokens_out=0,
    )


def _beginning(found: Found, ref: SessionRef) -> AnyEvent:
    """Return the event that a live plugin would have published as the session's first."""
    if found.place.origin == "compression" and ref.parent:
        before = SessionRef(id=ref.parent, root=ref.root)
        return graph.switched(before, ref, "compression")
    branched = found.place.origin == "branch"
    return SessionStarted(
        platform=found.scope.platform,
        title=clean_text(found.stored.title),
        parent=ref.parent,
        reason="branch" if branched else "start",
        details=details(found.stored.details),
    )
