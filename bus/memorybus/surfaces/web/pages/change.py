"""One memory put right or taken back: first what that would do, then why, then it is done."""

from collections.abc import Mapping
from typing import Any, Final

from memorybus.errors import ConfigError
from memorybus.operations.memories import amending
from memorybus.operations.memories.amending import Action, CannotAmend
from memorybus.operations.memories.browsing import KeptMemory
from memorybus.surfaces.views.events import summary
from memorybus.surfaces.web.kept_links import event_link, link, owner_of, whose_of
from memorybus.surfaces.web.page import Act, Asked, Done, Page
from memorybus.text.display import event_name, iso

WAIT: Final = 5.0
"""Seconds for which providers are waited for."""

ACTIONS: Final[Mapping[str, Action]] = {"correct": "correct", "delete": "delete"}
WHICH: Final = ("provider", "event", "mark")
"""The fields that say which memory, beside those that say whose."""

_SHOWN = 300
"""Characters of an event that are shown."""


def show(asked: Asked) -> Mapping[str, Any]:
    """Return the memory, and what would become of it at each provider.

    Raises:
        ConfigError: it cannot be asked for.
        MissingEvent: the memory is there no more.
    """
    action = ACTIONS.get(asked.query.get("action", ""))
    if action is None:
        raise ConfigError("say what to do with the memory: correct or delete")
    memory = meant(asked, asked.query)
    fields = owner_of(asked.query) | {name: asked.query.get(name, "") for name in WHICH}
    plan, problem, brought = None, "", ""
    try:
        plan = amending.plan_amendment(asked.settings, action, memory, memory.text)
    except CannotAmend as error:
        problem = str(error)
    if plan is not None and plan.brought is not None:
        event = plan.brought.event
        brought = f"{event_name(event)}: {summary(event, _SHOWN)}"
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


def meant(asked: Asked, fields: Mapping[str, str]) -> KeptMemory:
    """Return the memory that some fields mean."""
    provider, event, mark = (fields.get(name, "") for name in WHICH)
    return amending.find_memory(asked.settings, provider, whose_of(fields), event, mark)


def correct(asked: Asked) -> Done:
    """Put a memory right."""
    return _changed(asked, "correct", asked.form.get("content", ""))


def delete(asked: Asked) -> Done:
    """Take a memory back."""
    return _changed(asked, "delete", "")


def _changed(asked: Asked, action: Action, content: str) -> Done:
    plan = amending.plan_amendment(asked.settings, action, meant(asked, asked.form), content)
    done = amending.carry_out(asked.settings, plan, wait=WAIT, clock=asked.site.clock)
    said = "it is put right" if action == "correct" else "it is taken back"
    if not done.logged:
        said = "Redis has not taken it yet: it is spooled on this host, and will be sent"
    elif done.behind:
        said = f"{said}, and not applied yet by {', '.join(done.behind)}"
    where = link("/memories/kept", owner_of(asked.form), {"provider": asked.form["provider"]})
    return Done(f"{said}; the event: {', '.join(done.events)}", where)


PAGE: Final = Page(
    path="/memories/change",
    template="change.html",
    show=show,
    acts=(
        Act("/memories/correct", "correct memory", correct, told=("provider", "event")),
        Act("/memories/delete", "delete memory", delete, told=("provider", "event")),
    ),
)
