"""An operator's actions on dead letters: first a plan, then requests to the lanes' owners (G6)."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters, LocatedLetter
from memorybus.dead_letters.records import edit_event
from memorybus.dead_letters.requests import LetterRequest
from memorybus.errors import ConfigError, EventTooLarge, InvalidEvent
from memorybus.ids import NewId

from memorybus_console.operations.dead_letters import selection, waiting
from memorybus_console.operations.dead_letters.selection import (
    ActionResult,
    KeyPlan,
    LetterSelection,
    OperatorAction,
    OperatorDecision,
)
from memorybus_console.operations.dead_letters.waiting import WaitResult


class LetterPlan(msgspec.Struct, frozen=True):
    """What an action would do.

    Attributes:
        action: what to do.
        wanted: the operator's selection.
        letters: all dead letters of the selected providers, in order.
        chosen: the selected dead letters.
        steps: what the action does under each of their keys.
    """

    action: OperatorAction
    wanted: LetterSelection
    letters: list[LocatedLetter]
    chosen: list[LocatedLetter]
    steps: list[KeyPlan]

    @property
    def events(self) -> int:
        """How many events are retried, discarded or edited."""
        return sum(step.events for step in self.steps)

    @property
    def total(self) -> int:
        """How many dead letters may be settled by it."""
        return sum(step.events + step.then for step in self.steps)


class ActOutcome(msgspec.Struct, frozen=True):
    """The result of an action.

    Attributes:
        waited: how many requests the owners have not carried out yet.
        result: what became of the keys that it touched.
        discarded: how many dead letters were given up without being applied.
    """

    waited: WaitResult
    result: ActionResult
    discarded: int


def open_dead_letters(settings: Settings) -> DeadLetters:
    """Return the store of the log's dead letters, after checking the log.

    Raises:
        LogError: Redis is away, or the log cannot be used as it is.
    """
    desk = DeadLetters(settings)
    desk.check()
    return desk


def letters_of(desk: DeadLetters, provider: str | None) -> list[LocatedLetter]:
    """Return the dead letters of one provider, or of all.

    Raises:
        ConfigError: the provider is unknown.
    """
    known = desk.providers()
    if provider is not None and provider not in known:
        raise ConfigError(f"no provider {provider!r}; there are: {', '.join(known) or 'none'}")
    return desk.letters(known if provider is None else [provider])


def plan_action(desk: DeadLetters, action: OperatorAction, wanted: LetterSelection) -> LetterPlan:
    """Return what an action would do; nothing is changed.

    Raises:
        ConfigError: the selection is unclear, or the provider is unknown.
        NoSuchLetter: it selects no dead letter, or more than one event.
    """
    letters = letters_of(desk, wanted.provider)
    chosen = selection.select_letters(letters, wanted)
    return LetterPlan(action, wanted, letters, chosen, selection.plan_keys(action, letters, chosen))


def check_edit(
    desk: DeadLetters, dead: LocatedLetter, fields: Mapping[str, Any], settings: Settings
) -> None:
    """Check that edited fields make an event that may replace a dead letter's event.

    Raises:
        InvalidEvent, EventTooLarge: they do not.
    """
    published = desk.event(dead, shown=False)
    if published.event is None:
        raise InvalidEvent(published.why)
    event = edit_event(published.event.envelope.event, dict(fields))
    size = len(msgspec.msgpack.encode(event))
    if size > settings.event_max_bytes:
        raise EventTooLarge(
            f"the edited event has {size} bytes, more than `event_max_bytes` "
            f"({settings.event_max_bytes}); shorten it, or raise the setting"
        )


class LetterActs:
    """Carries plans out: sends requests to the lanes' owners, and waits for them within bounds.

    Args:
        desk: the dead letters.
        settings: the settings of the bus.
        clock: time.
        new_id: makes ids of requests.
    """

    def __init__(self, desk: DeadLetters, settings: Settings, clock: Clock, new_id: NewId) -> None:
        """Send no request yet."""
        self._desk = desk
        self._settings = settings
        self._clock = clock
        self._new_id = new_id

    def carry_out(
        self,
        planned: LetterPlan,
        decision: OperatorDecision,
        timeout: float,
        progress: Callable[[int], None] = lambda _: None,
    ) -> ActOutcome:
        """Carry a plan out, and wait until the owners have done so.

        Args:
            planned: the plan.
            decision: what the operator decided, and why.
            timeout: the most seconds to wait; requests that are still open then stay open.
            progress: receives how many of the lanes' dead letters are settled.

        Raises:
            TooManyRequests: a provider would have more open requests than allowed, and gets none.
            LogUnavailable: Redis is away; the requests that were sent stay.
        """
        asked = self._build_requests(planned, decision)
        before = self._desk.count(waiting.lanes_of_requests(asked))
        for provider, requests in asked.items():
            self._desk.send(provider, requests)
        waited = waiting.await_requests(
            self._desk,
            asked,
            self._clock,
            timeout=timeout,
            ownerless=2 * self._settings.lease,
            progress=lambda now: progress(min(planned.total, max(0, before - now))),
        )
        return self._outcome(planned, waited)

    def _build_requests(
        self, planned: LetterPlan, decision: OperatorDecision
    ) -> dict[str, list[LetterRequest]]:
        asked: dict[str, list[LetterRequest]] = {}
        for provider, request in selection.build_requests(decision, planned.chosen, self._new_id):
            asked.setdefault(provider, []).append(request)
        return asked

    def _outcome(self, planned: LetterPlan, waited: WaitResult) -> ActOutcome:
        now = letters_of(self._desk, planned.wanted.provider)
        result = selection.compare_letters(planned.steps, planned.letters, now)
        gone = 0
        if planned.action == "discard":
            gone = selection.compare_letters(planned.steps, planned.chosen, now).settled
        return ActOutcome(waited, result, gone)
