"""Selects events by id, session, lineage, scope, type and origin; pure."""

import msgspec

from memorybus.events import Envelope, MemoryWritten

ORIGIN = "write_origin"
"""The key in a memory write's provenance that names who wanted the write (Hermes's key)."""


class EventRow(msgspec.Struct, frozen=True):
    """The values of one event that a query compares; the archive has a column for each."""

    id: str  # the event's id
    session: str  # the id of its session
    type: str  # its type tag
    agent: str  # the agent whose memory it belongs to
    user: str  # the person
    workspace: str  # the project
    platform: str  # the platform of the conversation
    origin: str  # who wanted a memory write; empty for other events
    at: int = 0  # when it happened, milliseconds since the Unix epoch


class Query(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which events are wanted. An empty tuple matches all; of several words one must match."""

    ids: tuple[str, ...] = ()  # ids of events
    # Ids of sessions. An id means every session with that id, of any owner; `users`, `agents` and
    # `workspaces` select the owner.
    sessions: tuple[str, ...] = ()
    # Ids of sessions, each with all sessions that came from it. The history's reader resolves them
    # into `sessions` (`memorybus.history.history`); an unresolved one matches nothing.
    lineages: tuple[str, ...] = ()
    users: tuple[str, ...] = ()  # people
    agents: tuple[str, ...] = ()  # agents
    workspaces: tuple[str, ...] = ()  # projects
    platforms: tuple[str, ...] = ()  # platforms of conversations
    types: tuple[str, ...] = ()  # type tags, as `Event` spells them
    except_sessions: tuple[str, ...] = ()  # sessions whose events are left out
    except_users: tuple[str, ...] = ()  # people whose events are left out
    except_agents: tuple[str, ...] = ()  # agents whose events are left out
    # platforms whose events are left out, and origins whose memory writes are
    except_origins: tuple[str, ...] = ()
    # the latest time, milliseconds since the Unix epoch, by the event's own time; 0 for no end
    upto: int = 0

    def wants(self, row: EventRow) -> bool:
        pairs = (
            (self.ids, row.id),
            (self.users, row.user),
            (self.agents, row.agent),
            (self.workspaces, row.workspace),
            (self.platforms, row.platform),
            (self.types, row.type),
        )
        here = all(not words or word in words for words, word in pairs)
        here = here and (not self.upto or row.at <= self.upto)
        return here and self._in_session(row) and not self._excepted(row)

    def _in_session(self, row: EventRow) -> bool:
        anywhere = not (self.sessions or self.lineages)
        return anywhere or row.session in self.sessions

    def _excepted(self, row: EventRow) -> bool:
        return (
            row.session in self.except_sessions
            or row.user in self.except_users
            or row.agent in self.except_agents
            or row.platform in self.except_origins
            or (bool(row.origin) and row.origin in self.except_origins)
        )


EVERYTHING = Query()


def row_of(envelope: Envelope) -> EventRow:
    event, scope = envelope.event, envelope.scope
    return EventRow(
        envelope.id,
        envelope.session.id,
        type(event).__name__,
        scope.agent,
        scope.user,
        scope.workspace,
        scope.platform,
        event.provenance.get(ORIGIN, "") if isinstance(event, MemoryWritten) else "",
        envelope.at,
    )
