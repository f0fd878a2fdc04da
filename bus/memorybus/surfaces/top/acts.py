"""What can be done from the screen: the operations of `memorybus provider` and `memorybus dlq`."""

from contextlib import closing
from typing import Final

import msgspec

from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.ids import new_id
from memorybus.operations.dead_letters.acts import LetterActs, open_dead_letters, plan_action
from memorybus.operations.dead_letters.selection import (
    Action,
    LetterSelection,
    OperatorDecision,
)
from memorybus.operations.providers import lifecycle
from memorybus.operations.stores import Stores
from memorybus.surfaces.views import dead_letters
from memorybus.surfaces.views.dead_letters import counted

_WAIT: Final = 15.0
"""Seconds for which the lanes' owners are waited for; what was asked stays asked."""


class Pausing(msgspec.Struct, frozen=True):
    """Let a provider's lanes stand still, or go on."""

    name: str
    paused: bool


class Settling(msgspec.Struct, frozen=True):
    """Retry or discard the dead letters that a row stands for."""

    action: Action
    wanted: LetterSelection


Act = Pausing | Settling


class Question(msgspec.Struct, frozen=True):
    """What somebody is asked before an act.

    Attributes:
        act: the act.
        title: what would be done.
        plan: what follows from it.
        why: whether a reason is kept, and so has to be given.
    """

    act: Act
    title: str
    plan: str
    why: bool = True


class Acts:
    """Carries acts out; each call may wait for Redis, and for the lanes' owners.

    Args:
        settings: where the bus is.
        operator: who acts.
        clock: time.
    """

    def __init__(self, settings: Settings, operator: str, clock: Clock = SYSTEM) -> None:
        """Connect at the first act."""
        self._settings = settings
        self._operator = operator
        self._clock = clock

    def question(self, act: Act) -> Question:
        """Return what to ask before an act; changes nothing.

        Raises:
            MemoryBusError: there is nothing to do, or Redis is away.
        """
        match act:
            case Pausing(name=name, paused=True):
                plan = "Its lanes stand still, recalls go on; nothing is lost."
                return Question(act, f"Pause {name}?", plan)
            case Pausing(name=name):
                return Question(act, f"Resume {name}?", "Its lanes go on and catch up.", why=False)
            case Settling():
                return self._settling(act)

    def done(self, act: Act, reason: str) -> str:
        """Do it; return what was done.

        Raises:
            MemoryBusError: it could not be done.
        """
        match act:
            case Pausing():
                return self._pause(act, reason)
            case Settling():
                return self._settle(act, reason)

    def _settling(self, act: Settling) -> Question:
        with closing(open_dead_letters(self._settings)) as desk:
            planned = plan_action(desk, act.action, act.wanted)
        more = planned.total - planned.events
        then = f"{counted(more, 'event')} behind them are applied then. " if more else ""
        warned = dead_letters.untried(act.action, planned.chosen)
        events = counted(planned.events, "event")
        title = f"{act.action.capitalize()} {events} of {counted(len(planned.steps), 'key')}?"
        return Question(act, title, f"{then}{warned}" or "In order, until one is refused again.")

    def _pause(self, act: Pausing, reason: str) -> str:
        with Stores(self._settings) as stores:
            if act.paused:
                found = lifecycle.pause_instance(
                    stores, act.name, reason, self._operator, self._clock
                )
            else:
                found = lifecycle.resume_instance(stores, act.name)
        state = "is paused" if act.paused else "goes on"
        before = "" if found.changed else " already"
        return f"{found.name} {state}{before}; {counted(found.backlog, 'event')} wait"

    def _settle(self, act: Settling, reason: str) -> str:
        with closing(open_dead_letters(self._settings)) as desk:
            planned = plan_action(desk, act.action, act.wanted)
            now = self._clock.now_ms()
            decision = OperatorDecision(act.action, reason, self._operator, now)
            acts = LetterActs(desk, self._settings, self._clock, new_id)
            came = acts.carry_out(planned, decision, _WAIT)
        if came.waited.left:
            raise MemoryBusError(dead_letters.unfinished(came.waited))
        return dead_letters.outcome(act.action, came.result, came.discarded)
