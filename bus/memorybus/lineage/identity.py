"""Which session is meant: its id, and whose it is. Two people's sessions of one id are two."""

from typing import NamedTuple

from memorybus.events import Scope


class Identity(NamedTuple):
    """Identifies a session among all, also among those of the same id.

    The platform is no part of it: a person may go on with the same session elsewhere.

    Attributes:
        agent: whose session it is: this agent's,
        user: with this person,
        workspace: in this workspace, empty for none.
        session: its id.
    """

    agent: str
    user: str
    workspace: str
    session: str

    def with_session(self, session: str) -> "Identity":
        """Return another session of the same agent, person and workspace."""
        return self._replace(session=session)


def identity_of(scope: Scope, session: str) -> Identity:
    """Return which session an id means within a scope."""
    return Identity(scope.agent, scope.user, scope.workspace, session)
