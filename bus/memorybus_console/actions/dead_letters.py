"""Acts on dead letters: retry, discard, edit."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from memorybus.dead_letters.queue import DeadLetters, LocatedLetter
from memorybus.dead_letters.records import LetterRequest
from memorybus.errors import InvalidEvent
from memorybus.text.display import count_text

from memorybus_console.actions.action import Action, Ground
from memorybus_console.operations.dead_letters import (
    KeyPlan,
    LetterPlan,
    LetterSelection,
    OperatorAction,
    WaitResult,
    await_requests,
    check_edit,
    compare_letters,
    letters_of,
    open_dead_letters,
    plan_action,
    send_requests,
)
from memorybus_console.result import HIDDEN, Remark, Result

MAX_SHOWN = 50  # the most refused events that people see; JSON has them all


class PlannedLetters(Result, frozen=True):
    """What would be done with dead letters.

    Attributes:
        events: how many events would be retried, discarded or edited.
        then: how many other events of their keys would be applied after that.
        untried: how many events of a discard were never refused, and only wait behind others.
    """

    action: OperatorAction
    events: int
    then: int
    keys: list[KeyPlan]
    untried: int
    executed: bool = False

    def headline(self) -> str:
        if not self.keys:
            return "no dead letters"
        then = f"; {count_text(self.then, 'event')} behind them applied next" if self.then else ""
        events, keys = count_text(self.events, "event"), count_text(len(self.keys), "key")
        return f"would {self.action} {events} of {keys}{then}"

    def notes(self) -> Iterator[Remark]:
        if self.untried:
            were = "was" if self.untried == 1 else "were"
            yield Remark(
                f"{self.untried} of them {were} never tried and only wait behind a refused event; "
                f"to discard only refused events, name them: an event's id, or --error GROUP",
                "yellow",
            )

    def is_plan(self) -> bool:
        return bool(self.keys)


class LettersActed(Result, frozen=True):
    """What was done with dead letters.

    Attributes:
        events: how many events were retried, discarded or edited.
        then: how many other events of their keys were to be applied after that.
        finished: whether the owners of the lanes have done all of it.
        remaining: how many events of these keys still wait.
        requests: how many requests the owners have not carried out yet.
        unowned: whether no worker owns their lanes.
    """

    action: OperatorAction
    events: int
    then: int
    keys: Annotated[list[KeyPlan], HIDDEN]
    finished: bool
    settled: int
    discarded: int
    remaining: int
    refused: list[str]
    reasons: dict[str, str]
    requests: int
    unowned: bool
    executed: bool = True

    def headline(self) -> str:
        if not self.keys:
            return "no dead letters"
        applied = f"{count_text(self.settled - self.discarded, 'event')} applied"
        if self.action == "discard":
            applied = f"{count_text(self.discarded, 'event')} discarded, {applied}"
        return f"{applied}; {count_text(self.remaining, 'event')} of the same keys still wait"

    def notes(self) -> Iterator[Remark]:
        for event in self.refused[:MAX_SHOWN]:
            yield Remark(f"refused: {event} ({' '.join(self.reasons[event].split())})", "red")
        if self.finished:
            return
        kept = f"{count_text(self.requests, 'request')} not carried out yet, and kept for the lanes"
        if self.unowned:
            yield Remark(f"{kept}: no worker owns these lanes; start one: memorybus up", "red")
        else:
            yield Remark(f"{kept}; to see what still waits: memorybus dlq ls", "red")

    def failed(self) -> bool:
        return bool(self.refused) or not self.finished


@dataclass(frozen=True, kw_only=True)
class LettersAction(LetterSelection, Action[PlannedLetters, LettersActed]):
    """An act on the dead letters of a selection."""

    recorded = ("event", "key", "error", "everything", "provider")
    action: ClassVar[OperatorAction]

    def plan(self, ground: Ground) -> PlannedLetters:
        with closing(open_dead_letters(ground.settings)) as desk:
            plan = self._checked_plan(desk, ground)
        untried = sum(not dead.stored.letter.refused for dead in plan.chosen)
        return PlannedLetters(
            action=self.action,
            events=plan.events,
            then=plan.total - plan.events,
            keys=plan.steps,
            untried=untried if self.action == "discard" else 0,
        )

    def carry_out(self, ground: Ground) -> LettersActed:
        """Ask the lanes' owners, and wait at most `ground.wait`; what is open then stays open."""
        with closing(open_dead_letters(ground.settings)) as desk:
            plan = self._checked_plan(desk, ground)
            decision = LetterRequest(
                *("", 0, self.action),
                event=self._fields(),
                reason=self.reason,
                operator=ground.operator,
                at=ground.clock.now_ms(),
            )
            before = desk.count({dead.lane for dead in plan.chosen})
            asked = send_requests(desk, decision, plan.chosen, ground.new_id)
            waited = await_requests(
                *(desk, asked, ground.clock),
                timeout=ground.wait,
                ownerless=2 * ground.settings.lease,
                progress=lambda now: ground.progress(
                    "dead letters", min(plan.total, max(0, before - now)), plan.total
                ),
            )
            now = letters_of(desk, self.provider)
        return self._outcome(plan, waited, now)

    def _outcome(
        self, plan: LetterPlan, waited: WaitResult, now: Sequence[LocatedLetter]
    ) -> LettersActed:
        result = compare_letters(plan.steps, plan.letters, now)
        refused = [dead.stored.letter for dead in result.refused]
        discards = self.action == "discard"
        return LettersActed(
            action=self.action,
            events=plan.events,
            then=plan.total - plan.events,
            keys=plan.steps,
            finished=waited.remaining == 0,
            settled=result.settled,
            discarded=compare_letters(plan.steps, plan.chosen, now).settled if discards else 0,
            remaining=result.remaining,
            refused=[letter.event_id for letter in refused],
            reasons={letter.event_id: letter.reason for letter in refused},
            requests=waited.remaining,
            unowned=waited.unowned,
        )

    def _checked_plan(self, desk: DeadLetters, ground: Ground) -> LetterPlan:
        return plan_action(desk, self.action, self)

    def _fields(self) -> dict[str, Any]:
        return {}


class RetryLetters(LettersAction):
    """Apply dead letters again, one key at a time and in order, until one is refused again."""

    title = "retry dead letters"
    action = "retry"
    is_harmless = True


class DiscardLetters(LettersAction):
    """Give up events for a provider; the events that wait behind them are applied."""

    title = "discard dead letters"
    action = "discard"
    needs_reason = True


@dataclass(frozen=True, kw_only=True)
class EditLetter(LettersAction):
    """Replace an event for the provider that refused it, and retry its key.

    Attributes:
        fields: the fields of the event to apply instead, which the log does not record here; None
            for a plan alone.
    """

    title = "edit dead letters"
    action = "edit"
    needs_reason = True

    fields: dict[str, Any] | None = None

    def _checked_plan(self, desk: DeadLetters, ground: Ground) -> LetterPlan:
        """Return the plan, after checking that the fields make an event."""
        plan = super()._checked_plan(desk, ground)
        if self.fields is not None:
            check_edit(desk, plan.chosen[0], self.fields, ground.settings)
        return plan

    def _fields(self) -> dict[str, Any]:
        if self.fields is None:
            raise InvalidEvent("the fields of the edited event are missing")
        return self.fields
