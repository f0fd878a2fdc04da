"""Asks about the screen's actions, and performs them; each call may wait for Redis and workers."""

from dataclasses import replace
from typing import Any, Final

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings

from memorybus_console.actions.action import Action, Ground, perform
from memorybus_console.result import Result

_WAIT_SECONDS: Final = 15.0
"""Seconds to wait for the lanes' owners; they carry a request out even if that takes longer."""


class ActQuestion(msgspec.Struct, frozen=True):
    """The question to the operator before an action.

    Attributes:
        action: the action.
        title: what would be done.
        plan: the consequences.
        needs_reason: whether a reason has to be given.
    """

    action: Action[Any, Any]
    title: str
    plan: str
    needs_reason: bool


class Acts:
    """Carries actions out.

    Args:
        operator: who acts, for the record.
    """

    def __init__(self, settings: Settings, operator: str, clock: Clock = SYSTEM) -> None:
        self._ground = Ground(settings, operator, _WAIT_SECONDS, clock=clock)

    def question(self, action: Action[Any, Any]) -> ActQuestion:
        """Return what to ask before an action; change nothing.

        Raises:
            MemoryBusError: there is nothing to do, or Redis is away.
        """
        plan = "\n".join(action.plan(self._ground).sentences())
        return ActQuestion(action, action.question(), plan, action.needs_reason)

    def carry_out(self, action: Action[Any, Any], reason: str) -> tuple[str, bool]:
        """Perform an action; return what was done in words, and whether that is a failure.

        Raises:
            MemoryBusError: it could not be done.
        """
        done: Result = perform(replace(action, reason=reason), self._ground)
        return "\n".join(done.sentences()), done.failed()
