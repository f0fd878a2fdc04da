"""What is done about dead letters: first a plan of what would follow, then, with a reason, it."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

import msgspec

from memorybus.dead_letters.queue import DeadLetters
from memorybus.errors import ConfigError, InvalidEvent
from memorybus.ids import new_id
from memorybus.operations.dead_letters.acts import (
    LetterActs,
    LetterPlan,
    check_edit,
    open_dead_letters,
    plan_action,
)
from memorybus.operations.dead_letters.selection import Action, LetterSelection, OperatorDecision
from memorybus.surfaces.views import dead_letters as views
from memorybus.surfaces.views.events import said_json
from memorybus.surfaces.views.safe import json_text
from memorybus.surfaces.web.page import Act, Asked, Done, Page

WAIT: Final = 5.0
"""Seconds that an act waits for the lanes' owners; what is not done by then is done later."""

SHOWN: Final = 50
"""Keys of a plan that are shown."""

ACTIONS: Final[tuple[Action, ...]] = ("retry", "discard", "edit")
FIELDS: Final = ("event", "key", "error", "all", "provider")
"""What says which letters are meant; the log is told, too."""


def show(asked: Asked) -> Mapping[str, Any]:
    """Return what an action would do; nothing is changed."""
    action = asked.path["action"]
    if action not in ACTIONS:
        raise ConfigError(f"nothing is called {action!r}; there are: {', '.join(ACTIONS)}")
    with closing(open_dead_letters(asked.settings)) as desk:
        planned = plan_action(desk, action, selection_in(asked.query))
        said = _said(desk, planned) if action == "edit" else ""
    return {
        "action": action,
        "fields": {name: asked.query[name] for name in FIELDS if asked.query.get(name)},
        "planned": planned,
        "steps": planned.steps[:SHOWN],
        "warning": views.untried(planned.action, planned.chosen),
        "said": said,
    }


def selection_in(fields: Mapping[str, str]) -> LetterSelection:
    """Return which letters the fields of a path or a form mean; pure."""
    return LetterSelection(
        event=fields.get("event") or None,
        key=fields.get("key") or None,
        error=fields.get("error") or None,
        everything=bool(fields.get("all")),
        provider=fields.get("provider") or None,
    )


def _said(desk: DeadLetters, planned: LetterPlan) -> str:
    """Return the fields of the event that is edited: the last edit, or as it was published."""
    dead = planned.chosen[0]
    amendment = dead.stored.amendment
    if amendment is not None and amendment.edited is not None:
        return json_text(amendment.edited)
    published = desk.event(dead)
    if published.event is None:
        raise InvalidEvent(published.why)
    return json_text(said_json(published.event.envelope.event))


def acting(action: Action) -> Act:
    """Return the act of an action."""

    def do(asked: Asked) -> Done:
        fields = _fields(asked.form.get("fields", "")) if action == "edit" else {}
        with closing(open_dead_letters(asked.settings)) as desk:
            planned = plan_action(desk, action, selection_in(asked.form))
            if action == "edit":
                check_edit(desk, planned.chosen[0], fields, asked.settings)
            return Done(_carried_out(asked, desk, planned, fields), "/dead")

    return Act(f"/dead/{action}", f"{action} dead letters", do, told=FIELDS)


def _carried_out(
    asked: Asked, desk: DeadLetters, planned: LetterPlan, fields: dict[str, Any]
) -> str:
    """Return what came of it, in a sentence."""
    who, clock = asked.who, asked.site.clock
    decision = OperatorDecision(
        planned.action, asked.reason, who.name if who else "", clock.now_ms(), fields
    )
    came = LetterActs(desk, asked.settings, clock, new_id).carry_out(planned, decision, WAIT)
    said = views.outcome(planned.action, came.result, came.discarded)
    if came.result.refused:
        said = f"{said}; refused again: {len(came.result.refused)}"
    return f"{said}; {views.unfinished(came.waited)}" if came.waited.left else said


def _fields(text: str) -> dict[str, Any]:
    """Return the fields of an edited event.

    Raises:
        InvalidEvent: no JSON object.
    """
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        raise InvalidEvent(f"the event is no JSON object: {error}") from error


PAGE: Final = Page(
    path="/dead/{action}",
    template="dead_letter_plan.html",
    show=show,
    acts=tuple(acting(action) for action in ACTIONS),
)
