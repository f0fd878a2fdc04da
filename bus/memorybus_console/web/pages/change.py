"""Corrects or deletes one memory: shows the plan first, and carries it out with a reason."""

from collections.abc import Mapping
from typing import Any, Final

from memorybus.errors import ConfigError
from memorybus.text.display import event_name, iso

from memorybus_console.actions.memories import CorrectMemory, DeleteMemory
from memorybus_console.operations.memories import amending
from memorybus_console.operations.memories.amending import CannotAmend, MemoryAction
from memorybus_console.operations.memories.browsing import KeptMemory
from memorybus_console.views.events import summary
from memorybus_console.web.links import event_link, link, owner_fields, want_of
from memorybus_console.web.page import Act, Page, PageRequest

ACTIONS: Final[Mapping[str, MemoryAction]] = {"correct": "correct", "delete": "delete"}
MEMORY_FIELDS: Final = ("provider", "event", "mark")
"""The fields that name a memory, in addition to those that name its owner."""

_MAX_EVENT_CHARS = 300  # the most characters of an event that are shown


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the memory, and the effect of the change at each provider."""
    action = ACTIONS.get(request.query.get("action", ""))
    if action is None:
        raise ConfigError("name what to do with the memory: correct or delete")
    memory = find_memory(request, request.query)
    fields = owner_fields(request.query) | {
        name: request.query.get(name, "") for name in MEMORY_FIELDS
    }
    plan, problem, brought = None, "", ""
    try:
        plan = amending.plan_amendment(request.settings, action, memory, memory.text)
    except CannotAmend as error:
        problem = str(error)
    if plan is not None and plan.brought is not None:
        event = plan.brought.event
        brought = f"{event_name(event)}: {summary(event, _MAX_EVENT_CHARS)}"
    return {
        "action": action,
        "memory": memory,
        "fields": fields,
        "iso": iso,
        "plan": plan,
        "problem": problem,
        "brought": brought,
        "where_from": event_link(memory),
    }


def find_memory(request: PageRequest, fields: Mapping[str, str]) -> KeptMemory:
    provider, event, mark = (fields.get(name, "") for name in MEMORY_FIELDS)
    return amending.find_memory(request.settings, provider, want_of(fields), event, mark)


def _correction(request: PageRequest) -> dict[str, Any]:
    return _deletion(request) | {"content": request.form.get("content", "")}


def _deletion(request: PageRequest) -> dict[str, Any]:
    return {
        "event": request.form.get("event", ""),
        "provider": request.form.get("provider", ""),
        "memory": find_memory(request, request.form),
    }


def _list_path(request: PageRequest) -> str:
    provider = {"provider": request.form.get("provider", "")}
    return link("/memories/kept", owner_fields(request.form), provider)


PAGE: Final = Page(
    path="/memories/change",
    template="change.html",
    show=show,
    acts=(
        Act("/memories/correct", CorrectMemory, _list_path, _correction),
        Act("/memories/delete", DeleteMemory, _list_path, _deletion),
    ),
)
