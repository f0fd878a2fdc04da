"""Retries, edits or discards dead letters: shows the plan, and carries it out with a reason."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

import msgspec
from memorybus.dead_letters.queue import DeadLetters
from memorybus.errors import ConfigError, InvalidEvent
from memorybus.ids import new_id

from memorybus_console.operations.dead_letters import (
    LetterActs,
    LetterPlan,
    LetterSelection,
    OperatorAction,
    OperatorDecision,
    check_edit,
    open_dead_letters,
    plan_action,
)
from memorybus_console.views import dead_letters as views
from memorybus_console.views.events import fields_json
from memorybus_console.views.safe import json_text
from memorybus_console.web.page import Act, ActResult, Page, PageRequest

WAIT_SECONDS: Final = 5.0
"""Seconds to wait for the lanes' owners; what they have not done by then, they do later."""

MAX_SHOWN: Final = 50
"""How many keys of a plan are shown."""

ACTIONS: Final[tuple[OperatorAction, ...]] = ("retry", "discard", "edit")
FIELDS: Final = ("event", "key", "error", "all", "provider")
"""The fields that select letters; the log records them."""


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return what an action would do; nothing is changed."""
    action = request.path["action"]
    if action not in ACTIONS:
        raise ConfigError(f"there is no action {action!r}; there are: {', '.join(ACTIONS)}")
    with closing(open_dead_letters(request.settings)) as desk:
        planned = plan_action(desk, action, selection_from(request.query))
        said = _editable_fields(desk, planned) if action == "edit" else ""
    return {
        "action": action,
        "fields": {name: request.query[name] for name in FIELDS if request.query.get(name)},
        "planned": planned,
        "steps": planned.steps[:MAX_SHOWN],
        "warning": views.untried_warning(planned.action, planned.chosen),
        "said": said,
    }


def selection_from(fields: Mapping[str, str]) -> LetterSelection:
    """Return the selection that the fields of a path or a form make; pure."""
    return LetterSelection(
        event=fields.get("event") or None,
        key=fields.get("key") or None,
        error=fields.get("error") or None,
        everything=bool(fields.get("all")),
        provider=fields.get("provider") or None,
    )


def _editable_fields(desk: DeadLetters, planned: LetterPlan) -> str:
    """Return the fields of the event to edit: those of its last edit, else as it was published."""
    dead = planned.chosen[0]
    amendment = dead.stored.amendment
    if amendment is not None and amendment.edited is not None:
        return json_text(amendment.edited)
    published = desk.event(dead)
    if published.event is None:
        raise InvalidEvent(published.why)
    return json_text(fields_json(published.event.envelope.event))


def act_for(action: OperatorAction) -> Act:
    """Return the act of an action."""

    def do(request: PageRequest) -> ActResult:
        fields = _fields(request.form.get("fields", "")) if action == "edit" else {}
        with closing(open_dead_letters(request.settings)) as desk:
            planned = plan_action(desk, action, selection_from(request.form))
            if action == "edit":
                check_edit(desk, planned.chosen[0], fields, request.settings)
            return ActResult(_carry_out(request, desk, planned, fields), "/dead")

    return Act(f"/dead/{action}", f"{action} dead letters", do, recorded=FIELDS)


def _carry_out(
    request: PageRequest, desk: DeadLetters, planned: LetterPlan, fields: dict[str, Any]
) -> str:
    """Carry a plan out, and return its result as a sentence."""
    who, clock = request.who, request.site.clock
    decision = OperatorDecision(
        planned.action, request.reason, who.name if who else "", clock.now_ms(), fields
    )
    came = LetterActs(desk, request.settings, clock, new_id).carry_out(
        planned, decision, WAIT_SECONDS
    )
    said = views.describe_outcome(planned.action, came.result, came.discarded)
    if came.result.refused:
        said = f"{said}; refused again: {len(came.result.refused)}"
    return f"{said}; {views.describe_unfinished(came.waited)}" if came.waited.left else said


def _fields(text: str) -> dict[str, Any]:
    """Return the fields of an edited event.

    Raises:
        InvalidEvent: the text is not a JSON object.
    """
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        raise InvalidEvent(f"the event is no JSON object: {error}") from error


PAGE: Final = Page(
    path="/dead/{action}",
    template="dead_letter_plan.html",
    show=show,
    acts=tuple(act_for(action) for action in ACTIONS),
)
