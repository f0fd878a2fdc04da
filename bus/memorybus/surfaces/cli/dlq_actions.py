"""The acts of ``memorybus dlq``: ask the lanes' owners, and wait for them.

It is loaded when such a command runs, not with the command line.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import msgspec

from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import Dead, DeadLetters
from memorybus.dead_letters.records import replaced
from memorybus.errors import ConfigError, EventTooLarge, InvalidEvent
from memorybus.operations.dead_letters import asking, selection
from memorybus.operations.dead_letters.selection import (
    Action,
    ActionResult,
    KeyPlan,
    LetterSelection,
    OperatorDecision,
)
from memorybus.operations.dead_letters.waiting import Waited
from memorybus.surfaces.cli.options import Common, operator
from memorybus.surfaces.views import dead_letters
from memorybus.surfaces.views.dead_letters import counted
from memorybus.surfaces.views.output import NOTHING_DONE
from memorybus.surfaces.views.safe import one_line

SHOWN = 50
"""How many keys, or refused events, are shown to people; JSON has them all."""


class DeadLetterAct:
    """One retry, edit or discard: select, show what would follow, and do it with `--execute`."""

    def __init__(self, common: Common, *, execute: bool, wait: float) -> None:
        """Read the settings.

        Args:
            common: where the bus is.
            execute: do it.
            wait: seconds to wait for the owners.
        """
        self._output = common.output()
        self._settings = common.settings()
        self._execute = execute
        self._wait = wait

    def run(
        self,
        action: Action,
        wanted: LetterSelection,
        reason: str,
        event: dict[str, Any] | None = None,
    ) -> int:
        """Return the exit code.

        Args:
            action: what to do.
            wanted: with which dead letters.
            reason: why.
            event: the fields of an edited event.

        Raises:
            MemoryBusError: it cannot be done; no owner was asked for anything.
        """
        with closing(open_desk(self._settings)) as desk:
            letters = letters_of(desk, wanted.provider)
            chosen = selection.selected(letters, wanted)
            if event is not None:
                self._validate(desk, chosen[0], event)
            steps = selection.steps(action, letters, chosen)
            if not self._execute or not chosen:
                return self._would(action, steps, dead_letters.untried(action, chosen))
            decision = OperatorDecision(action, reason, operator(), SYSTEM.now_ms(), event or {})
            waited = self._ask(desk, decision, chosen, steps)
            now = letters_of(desk, wanted.provider)
            result = selection.compared(steps, letters, now)
            gone = selection.compared(steps, chosen, now).settled if action == "discard" else 0
            return self._did(action, steps, result, gone, waited)

    def _validate(self, desk: DeadLetters, dead: Dead, fields: dict[str, Any]) -> None:
        """Check that an edit is an event.

        Raises:
            InvalidEvent, EventTooLarge: it is not.
        """
        published = desk.event(dead, shown=False)
        if published.event is None:
            raise InvalidEvent(published.why)
        size = len(msgspec.msgpack.encode(replaced(published.event.envelope.event, fields)))
        most = self._settings.event_max_bytes
        if size > most:
            raise EventTooLarge(f"the edited event has {size} bytes, more than {most}")

    def _would(self, action: Action, steps: Sequence[KeyPlan], warning: str) -> int:
        if self._output.json:
            self._output.result(_shown_json(action, steps, executed=False))
            return 0
        if not steps:
            self._output.show("no dead letters")
            return 0
        events = counted(sum(step.events for step in steps), "event")
        self._output.show(f"would {action} {events} of {counted(len(steps), 'key')}")
        self._output.show(dead_letters.plan(action, steps[:SHOWN]))
        if len(steps) > SHOWN:
            self._output.note(f"{counted(len(steps) - SHOWN, 'more key')}, not shown")
        if warning:
            self._output.note(warning, "yellow")
        self._output.note(NOTHING_DONE)
        return 0

    def _ask(
        self,
        desk: DeadLetters,
        decision: OperatorDecision,
        chosen: Sequence[Dead],
        steps: Sequence[KeyPlan],
    ) -> Waited:
        before = desk.count({dead.lane for dead in chosen})
        asked = asking.sent(desk, decision, chosen)
        total = sum(step.events + step.then for step in steps)
        with self._output.progress("events") as bar:
            task = bar.add_task("dead letters", total=total)
            return asking.waited(
                desk,
                asked,
                self._settings,
                SYSTEM,
                timeout=self._wait,
                progress=lambda now: bar.update(task, completed=min(total, max(0, before - now))),
            )

    def _did(
        self,
        action: Action,
        steps: Sequence[KeyPlan],
        result: ActionResult,
        discarded: int,
        waited: Waited,
    ) -> int:
        if self._output.json:
            self._output.result(
                _shown_json(action, steps, executed=True)
                | {
                    "finished": waited.left == 0,
                    "settled": result.settled,
                    "left": result.left,
                    "refused": [dead.stored.letter.event_id for dead in result.refused],
                }
            )
        else:
            self._output.show(dead_letters.outcome(action, result, discarded))
        self._complain(result, waited)
        return 1 if result.refused or waited.left else 0

    def _complain(self, result: ActionResult, waited: Waited) -> None:
        for dead in result.refused[:SHOWN]:
            letter = dead.stored.letter
            why = f"refused: {letter.event_id} ({one_line(letter.reason)})"
            self._output.note(why, "red")
        if waited.left:
            self._output.note(dead_letters.unfinished(waited), "red")


def _shown_json(action: Action, steps: Sequence[KeyPlan], *, executed: bool) -> dict[str, Any]:
    return {
        "action": action,
        "executed": executed,
        "events": sum(step.events for step in steps),
        "then": sum(step.then for step in steps),
        "keys": [msgspec.to_builtins(step) for step in steps],
    }


def open_desk(settings: Settings) -> DeadLetters:
    """Return the dead letters of the log.

    Raises:
        LogError: Redis is away, or the log cannot be used as it is.
    """
    desk = DeadLetters(settings)
    desk.check()
    return desk


def letters_of(desk: DeadLetters, provider: str | None) -> list[Dead]:
    """Return the dead letters of one provider, or of all.

    Raises:
        ConfigError: nobody knows the provider.
    """
    known = desk.providers()
    if provider is not None and provider not in known:
        raise ConfigError(f"no provider {provider!r}; there are: {', '.join(known) or 'none'}")
    return desk.letters(known if provider is None else [provider])
