"""Retries, edits or discards dead letters: shows the plan, and carries it out with a reason."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

import msgspec
from memorybus.errors import ConfigError, InvalidEvent

from memorybus_console.actions.action import Ground
from memorybus_console.actions.dead_letters import (
    DiscardLetters,
    EditLetter,
    LettersAction,
    RetryLetters,
)
from memorybus_console.operations.dead_letters import (
    LetterSelection,
    open_dead_letters,
    plan_action,
)
from memorybus_console.views.events import fields_json
from memorybus_console.views.render import json_text
from memorybus_console.web.page import Act, Page, PageRequest

MAX_SHOWN: Final = 50  # how many keys of a plan are shown

ACTIONS: Final[Mapping[str, type[LettersAction]]] = {
    "retry": RetryLetters,
    "discard": DiscardLetters,
    "edit": EditLetter,
}
FIELDS: Final = ("event", "key", "error", "all", "provider")  # the fields that select letters


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return what an action would do; nothing is changed."""
    name = request.path["action"]
    if name not in ACTIONS:
        raise ConfigError(f"there is no action {name!r}; there are: {', '.join(ACTIONS)}")
    planned = ACTIONS[name](**_selected(request.query)).plan(
        Ground(request.settings, request.operator)
    )
    return {
        "action": name,
        "needs_reason": ACTIONS[name].needs_reason,
        "fields": {field: request.query[field] for field in FIELDS if request.query.get(field)},
        "planned": planned,
        "steps": planned.keys[:MAX_SHOWN],
        "warning": " ".join(note.text for note in planned.notes()),
        "editable": _editable_fields(request) if name == "edit" else "",
    }


def _selected(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the selection that the fields of a path or a form make; pure."""
    return {
        "event": fields.get("event") or None,
        "key": fields.get("key") or None,
        "error": fields.get("error") or None,
        "everything": bool(fields.get("all")),
        "provider": fields.get("provider") or None,
    }


def _editable_fields(request: PageRequest) -> str:
    """Return the fields of the event to edit: those of its last edit, else as it was published."""
    with closing(open_dead_letters(request.settings)) as desk:
        dead = plan_action(desk, "edit", LetterSelection(**_selected(request.query))).chosen[0]
        amendment = dead.stored.amendment
        if amendment is not None and amendment.edited is not None:
            return json_text(amendment.edited)
        published = desk.event(dead)
    if published.event is None:
        raise InvalidEvent(published.why)
    return json_text(fields_json(published.event.envelope.event))


def _chosen(request: PageRequest) -> dict[str, Any]:
    return _selected(request.form)


def _edited(request: PageRequest) -> dict[str, Any]:
    return _chosen(request) | {"fields": _fields(request.form.get("fields", ""))}


def _all_letters(_: PageRequest) -> str:
    return "/dead"


def _fields(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        raise InvalidEvent(f"the event is no JSON object: {error}") from error


PAGE: Final = Page(
    path="/dead/{action}",
    template="dead_letter_plan.html",
    show=show,
    acts=(
        Act("/dead/retry", RetryLetters, _all_letters, _chosen),
        Act("/dead/discard", DiscardLetters, _all_letters, _chosen),
        Act("/dead/edit", EditLetter, _all_letters, _edited),
    ),
)
