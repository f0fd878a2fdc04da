"""What can be done from the screen: the operations of `memorybus provider` and `memorybus dlq`."""

from contextlib import closing
from typing import Final

import msgspec

from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import Dead, DeadLetters
from memorybus.errors import MemoryBusError
from memorybus.operations.dead_letters import asking, selection
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
            case Settling(action=action, wanted=wanted):
                return self._settling(act, action, wanted)

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

    def _settling(self, act: Act, action: Action, wanted: LetterSelection) -> Question:
        with self._desk() as desk:
            letters = self._letters(desk, wanted)
            chosen = selection.selected(letters, wanted)
        steps = selection.steps(action, letters, chosen)
        events = sum(step.events for step in steps)
        more = sum(step.then for step in steps)
        plan = f"{counted(more, 'event')} behind them are applied then." if more else ""
        plan = f"{plan} {dead_letters.untried(action, chosen)}".strip()
        title = f"{action.capitalize()} {counted(events, 'event')} of {counted(len(steps), 'key')}?"
        return Question(act, title, plan or "In order, until one is refused again.")

    def _pause(self, act: Pausing, reason: str) -> str:
        with Stores(self._settings) as stores:
            if act.paused:
                found = lifecycle.pause(stores, act.name, reason, self._operator, self._clock)
            else:
                found = lifecycle.resume(stores, act.name)
        state = "is paused" if act.paused else "goes on"
        before = "" if found.changed else " already"
        return f"{found.name} {state}{before}; {counted(found.backlog, 'event')} wait"

    def _settle(self, act: Settling, reason: str) -> str:
        with self._desk() as desk:
            before = self._letters(desk, act.wanted)
            chosen = selection.selected(before, act.wanted)
            steps = selection.steps(act.action, before, chosen)
            now = self._clock.now_ms()
            decision = OperatorDecision(act.action, reason, self._operator, now)
            asked = asking.sent(desk, decision, chosen)
            waited = asking.waited(desk, asked, self._settings, self._clock, timeout=_WAIT)
            after = self._letters(desk, act.wanted)
        if waited.left:
            raise MemoryBusError(dead_letters.unfinished(waited))
        result = selection.compared(steps, before, after)
        gone = selection.compared(steps, chosen, after).settled if act.action == "discard" else 0
        return dead_letters.outcome(act.action, result, gone)

    def _desk(self) -> "closing[DeadLetters]":
        return closing(DeadLetters(self._settings))

    def _letters(self, desk: DeadLetters, wanted: LetterSelection) -> list[Dead]:
        return desk.letters([wanted.provider] if wanted.provider else desk.providers())
