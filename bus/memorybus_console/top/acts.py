"""Carries out the screen's actions: operations of `memorybus provider` and `memorybus dlq`."""

from contextlib import closing
from typing import Final

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.ids import new_id

from memorybus_console.operations.dead_letters import (
    LetterActs,
    LetterSelection,
    OperatorAction,
    OperatorDecision,
    open_dead_letters,
    plan_action,
)
from memorybus_console.operations.providers import lifecycle
from memorybus_console.operations.stores import Stores
from memorybus_console.views import dead_letters
from memorybus_console.views.dead_letters import count_text

_WAIT_SECONDS: Final = 15.0
"""Seconds to wait for the lanes' owners; they carry a request out even if that takes longer."""


class PauseAct(msgspec.Struct, frozen=True):
    """Pause a provider's lanes, or resume them."""

    name: str
    paused: bool


class LettersAct(msgspec.Struct, frozen=True):
    """Retry or discard the dead letters of a row."""

    action: OperatorAction
    wanted: LetterSelection


TopAct = PauseAct | LettersAct


class ActQuestion(msgspec.Struct, frozen=True):
    """The question to the operator before an action.

    Attributes:
        act: the action.
        title: what would be done.
        plan: the consequences.
        why: whether a reason is recorded, and so has to be given.
    """

    act: TopAct
    title: str
    plan: str
    why: bool = True


class Acts:
    """Carries actions out; each call may wait for Redis, and for the lanes' owners.

    Args:
        settings: the settings of the bus.
        operator: who acts, for the record.
        clock: time.
    """

    def __init__(self, settings: Settings, operator: str, clock: Clock = SYSTEM) -> None:
        """Connect at the first action."""
        self._settings = settings
        self._operator = operator
        self._clock = clock

    def question(self, act: TopAct) -> ActQuestion:
        """Return what to ask before an action; change nothing.

        Raises:
            MemoryBusError: there is nothing to do, or Redis is away.
        """
        match act:
            case PauseAct(name=name, paused=True):
                plan = "Its lanes stop, recalls continue; no event is lost."
                return ActQuestion(act, f"Pause {name}?", plan)
            case PauseAct(name=name):
                return ActQuestion(
                    act, f"Resume {name}?", "Its lanes continue and catch up.", why=False
                )
            case LettersAct():
                return self._letters_question(act)

    def carry_out(self, act: TopAct, reason: str) -> str:
        """Carry an action out; return what was done.

        Raises:
            MemoryBusError: it could not be done.
        """
        match act:
            case PauseAct():
                return self._pause_or_resume(act, reason)
            case LettersAct():
                return self._settle_letters(act, reason)

    def _letters_question(self, act: LettersAct) -> ActQuestion:
        with closing(open_dead_letters(self._settings)) as desk:
            planned = plan_action(desk, act.action, act.wanted)
        more = planned.total - planned.events
        then = f"{count_text(more, 'event')} behind them are applied next. " if more else ""
        warned = dead_letters.untried_warning(act.action, planned.chosen)
        events = count_text(planned.events, "event")
        title = f"{act.action.capitalize()} {events} of {count_text(len(planned.steps), 'key')}?"
        steps = f"{then}{warned}" or "They are applied in order, until one is refused again."
        return ActQuestion(act, title, steps)

    def _pause_or_resume(self, act: PauseAct, reason: str) -> str:
        with Stores(self._settings) as stores:
            if act.paused:
                found = lifecycle.pause_instance(
                    stores, act.name, reason, self._operator, self._clock
                )
            else:
                found = lifecycle.resume_instance(stores, act.name)
        state = "is paused" if act.paused else "is resumed"
        before = "" if found.changed else " already"
        return f"{found.name} {state}{before}; {count_text(found.backlog, 'event')} wait"

    def _settle_letters(self, act: LettersAct, reason: str) -> str:
        with closing(open_dead_letters(self._settings)) as desk:
            planned = plan_action(desk, act.action, act.wanted)
            now = self._clock.now_ms()
            decision = OperatorDecision(act.action, reason, self._operator, now)
            acts = LetterActs(desk, self._settings, self._clock, new_id)
            came = acts.carry_out(planned, decision, _WAIT_SECONDS)
        if came.waited.left:
            raise MemoryBusError(dead_letters.describe_unfinished(came.waited))
        return dead_letters.describe_outcome(act.action, came.result, came.discarded)
