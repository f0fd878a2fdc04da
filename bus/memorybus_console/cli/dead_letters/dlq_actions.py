"""The actions of ``memorybus dlq``: show a plan, or carry it out and show the result.

This module is imported when such a command runs, not with the command line.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import msgspec
from memorybus.clock import SYSTEM
from memorybus.dead_letters.queue import DeadLetters
from memorybus.ids import new_id

from memorybus_console.cli.options import Common, operator
from memorybus_console.operations.dead_letters import (
    ActOutcome,
    KeyPlan,
    LetterActs,
    LetterPlan,
    LetterSelection,
    OperatorAction,
    OperatorDecision,
    check_edit,
    open_dead_letters,
    plan_action,
)
from memorybus_console.views import dead_letters
from memorybus_console.views.dead_letters import count_text
from memorybus_console.views.output import NOTHING_DONE
from memorybus_console.views.safe import one_line

MAX_SHOWN = 50
"""The most keys, or refused events, that people see; JSON has them all."""


class DeadLetterAct:
    """One retry, edit or discard: select dead letters, show the plan, execute it if asked to."""

    def __init__(self, common: Common, *, execute: bool, wait: float) -> None:
        """Read the settings.

        Args:
            common: the options that lead to the settings.
            execute: whether to carry the plan out; otherwise it is only shown.
            wait: seconds to wait for the workers that own the lanes.
        """
        self._output = common.output()
        self._settings = common.settings()
        self._execute = execute
        self._wait = wait

    def run(
        self,
        action: OperatorAction,
        wanted: LetterSelection,
        reason: str,
        event: dict[str, Any] | None = None,
    ) -> int:
        """Show the plan, or execute it and show the result; return the exit code.

        Args:
            action: what to do.
            wanted: selects the dead letters.
            reason: the reason, for the record.
            event: the fields of an edited event.

        Raises:
            MemoryBusError: it cannot be done; no owner was asked for anything.
        """
        with closing(open_dead_letters(self._settings)) as desk:
            planned = plan_action(desk, action, wanted)
            if event is not None:
                check_edit(desk, planned.chosen[0], event, self._settings)
            if not self._execute or not planned.chosen:
                return self._show_plan(planned)
            decision = OperatorDecision(action, reason, operator(), SYSTEM.now_ms(), event or {})
            return self._show_result(planned, self._carry_out(desk, planned, decision))

    def _show_plan(self, planned: LetterPlan) -> int:
        action, steps = planned.action, planned.steps
        if self._output.json:
            self._output.result(_plan_json(action, steps, executed=False))
            return 0
        if not steps:
            self._output.show("no dead letters")
            return 0
        events = count_text(planned.events, "event")
        self._output.show(f"would {action} {events} of {count_text(len(steps), 'key')}")
        self._output.show(dead_letters.plan_table(action, steps[:MAX_SHOWN]))
        if len(steps) > MAX_SHOWN:
            self._output.note(f"{count_text(len(steps) - MAX_SHOWN, 'more key')}, not shown")
        if warning := dead_letters.untried_warning(action, planned.chosen):
            self._output.note(warning, "yellow")
        self._output.note(NOTHING_DONE)
        return 0

    def _carry_out(
        self, desk: DeadLetters, planned: LetterPlan, decision: OperatorDecision
    ) -> ActOutcome:
        acts = LetterActs(desk, self._settings, SYSTEM, new_id)
        with self._output.progress("events") as bar:
            task = bar.add_task("dead letters", total=planned.total)
            return acts.carry_out(
                planned, decision, self._wait, lambda done: bar.update(task, completed=done)
            )

    def _show_result(self, planned: LetterPlan, came: ActOutcome) -> int:
        result, waited = came.result, came.waited
        if self._output.json:
            self._output.result(
                _plan_json(planned.action, planned.steps, executed=True)
                | {
                    "finished": waited.left == 0,
                    "settled": result.settled,
                    "left": result.left,
                    "refused": [dead.stored.letter.event_id for dead in result.refused],
                }
            )
        else:
            said = dead_letters.describe_outcome(planned.action, result, came.discarded)
            self._output.show(said)
        self._note_failures(came)
        return 1 if result.refused or waited.left else 0

    def _note_failures(self, came: ActOutcome) -> None:
        for dead in came.result.refused[:MAX_SHOWN]:
            letter = dead.stored.letter
            why = f"refused: {letter.event_id} ({one_line(letter.reason)})"
            self._output.note(why, "red")
        if came.waited.left:
            self._output.note(dead_letters.describe_unfinished(came.waited), "red")


def _plan_json(
    action: OperatorAction, steps: Sequence[KeyPlan], *, executed: bool
) -> dict[str, Any]:
    return {
        "action": action,
        "executed": executed,
        "events": sum(step.events for step in steps),
        "then": sum(step.then for step in steps),
        "keys": [msgspec.to_builtins(step) for step in steps],
    }
