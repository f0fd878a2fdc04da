"""The identity for which an operator tries a prompt."""

import msgspec
from memorybus.events import Scope


class Asker(msgspec.Struct, frozen=True):
    """The identity for which a prompt is asked. None stands for any; only operators may use it.

    Attributes:
        agent: the agent.
        user: the person.
        workspace: the project; "" for none.
        session: the session, which may have warm answers; "" for a new one.
    """

    agent: str | None = "default"
    user: str | None = "default"
    workspace: str | None = ""
    session: str = ""

    @property
    def scope(self) -> Scope | None:
        """The scope of the asker; None if it asks for several scopes."""
        if self.agent is None or self.user is None or self.workspace is None:
            return None
        return Scope(agent=self.agent, user=self.user, workspace=self.workspace)
