"""A provider whose hooks are called as a lane calls them, with events of two people."""

from typing import Any

from memorybus.errors import Transient
from memorybus.events import AnyEvent, Scope, SessionRef, TurnCompleted
from memorybus_providers.base import MemoryProvider, RecallContext, RecallScope
from memorybus_providers.contract.samples import SampleStep, hook_context
from memorybus_providers.dispatch import bind

ADA = Scope(agent="coder", user="ada")
BOB = Scope(agent="coder", user="bob")
TALK = SessionRef(id="talk", root="talk")


class HookWorld:
    """One instance.

    Attributes:
        provider: the instance, open.
    """

    def __init__(self, provider: MemoryProvider) -> None:
        self.provider = provider
        self._n = 0

    def step(self, event: AnyEvent, scope: Scope = ADA, session: SessionRef = TALK) -> SampleStep:
        """Return an event with a place in the log."""
        self._n += 1
        return SampleStep(self._n, event, scope, session)

    def send(self, step: SampleStep, deadline: float = 30.0) -> None:
        """Apply an event once."""
        bind(self.provider)(step.event, hook_context(step, deadline=deadline))

    def tell(self, event: AnyEvent, scope: Scope = ADA, session: SessionRef = TALK) -> SampleStep:
        """Apply an event, and return it."""
        step = self.step(event, scope, session)
        self.send(step)
        return step

    def deliver(self, step: SampleStep, deadline: float = 30.0) -> list[Transient]:
        """Apply an event as a lane does: what is in doubt is asked for before it is sent again."""
        failed: list[Transient] = []
        while not failed or not self.knows(step):
            try:
                self.send(step, deadline)
            except Transient as error:
                failed.append(error)
            else:
                break
        return failed

    def knows(self, step: SampleStep) -> bool:
        """Ask whether an event is held."""
        return self.provider.knows(step.event_id, hook_context(step))

    def recall(
        self, query: str, scope: Scope = ADA, session: SessionRef | None = None
    ) -> list[str]:
        """Return the texts that a recall finds."""
        ctx = RecallContext(RecallScope.own(scope), session)
        return [one.text for one in self.provider.prefetch(query, ctx)]

    def call(self, tool: str, **arguments: Any) -> Any:
        context = hook_context(self.step(TurnCompleted()))
        return self.provider.handle_tool_call(tool, arguments, context)
