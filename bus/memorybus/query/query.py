"""Which events are wanted: by id, session, lineage, scope, type, origin; pure."""

import msgspec

from memorybus.events import Envelope, MemoryWritten

ORIGIN = "write_origin"
"""The provenance of a memory write that says who wanted it (Hermes: ``write_origin``)."""


class EventRow(msgspec.Struct, frozen=True):
    """What a query looks at of one event, as the archive's columns hold it.

    Attributes:
        id: the event's.
        session: where it happened.
        type: its type tag.
        agent: whose memory.
        user: the person.
        workspace: the project.
        platform: where the conversation is.
        origin: who wanted a memory write; empty for other events.
        at: when it happened, milliseconds.
    """

    id: str
    session: str
    type: str
    agent: str
    user: str
    workspace: str
    platform: str
    origin: str
    at: int = 0


class Query(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which events are wanted. An empty tuple wants all; of several words any one may match.

    Attributes:
        ids: events.
        sessions: sessions, each alone; an id means every session with that id, whoever has it. The
            words for people, agents and workspaces say whose session is meant.
        lineages: sessions with all that came from them. The history's reader resolves them into
            `sessions` (`memorybus.history.history`); an unresolved one matches nothing.
        users: people.
        agents: agents.
        workspaces: projects.
        platforms: where conversations are.
        types: type tags, as `Event` spells them.
        except_sessions: sessions that are left out, as are the next three.
        except_users: people.
        except_agents: agents.
        except_origins: platforms, or who wanted a memory write.
        upto: only what happened until then, milliseconds, by the event's own time; 0 for no end.
    """

    ids: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    lineages: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    workspaces: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    except_sessions: tuple[str, ...] = ()
    except_users: tuple[str, ...] = ()
    except_agents: tuple[str, ...] = ()
    except_origins: tuple[str, ...] = ()
    upto: int = 0

    def wants(self, row: EventRow) -> bool:
        """Say whether a row is wanted."""
        asked = (
            (self.ids, row.id),
            (self.users, row.user),
            (self.agents, row.agent),
            (self.workspaces, row.workspace),
            (self.platforms, row.platform),
            (self.types, row.type),
        )
        here = all(not words or word in words for words, word in asked)
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
    """Return what a query looks at of an event."""
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
