"""Identifies a session by its id and its owner: two people may have sessions with the same id."""

from typing import NamedTuple

from memorybus.events import Scope


class Identity(NamedTuple):
    """Identifies a session among all sessions, even if others have the same id."""

    agent: str  # the agent that owns the session
    user: str  # the person it talks with
    workspace: str  # the workspace; empty for none
    session: str  # the session's id

    def with_session(self, session: str) -> "Identity":
        """Return another session of the same agent, person and workspace."""
        return self._replace(session=session)


def identity_of(scope: Scope, session: str) -> Identity:
    return Identity(scope.agent, scope.user, scope.workspace, session)
