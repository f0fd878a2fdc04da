"""Memories: of whom providers keep something, page by page."""

from collections.abc import Mapping
from typing import Any, Final

from memorybus.operations.memories import browsing
from memorybus.operations.memories.browsing import OwnerNames, Person
from memorybus.surfaces.web.kept_links import link
from memorybus.surfaces.web.page import Asked, Page

_AFTER = ("after_agent", "after_user", "after_workspace")


def show(asked: Asked) -> Mapping[str, Any]:
    """Return a page of people, and the form that looks for one."""
    holding = asked.query.get("name", "").strip()
    found = browsing.list_people(asked.settings, after(asked.query), holding=holding)
    told = list(dict.fromkeys(name for one in found.people for name in one.memories))
    more = ""
    if found.more and found.people:
        last = dict(zip(_AFTER, found.people[-1].owner, strict=True))
        more = link("/memories", {"name": holding}, last)
    return {
        "name": holding,
        "providers": told,
        "people": [(one, links(one)) for one in found.people],
        "silent": found.silent,
        "more": more,
    }


def after(fields: Mapping[str, str]) -> OwnerNames | None:
    """Return behind whom the page begins; None for the first."""
    if _AFTER[0] not in fields:
        return None
    agent, user, workspace = (fields.get(name, "") for name in _AFTER)
    return agent, user, workspace


def links(one: Person) -> dict[str, str]:
    """Return where each provider's memories of a person are."""
    owner = {"user": one.user, "agent": one.agent, "workspace": one.workspace}
    return {name: link("/memories/kept", owner, {"provider": name}) for name in one.memories}


PAGE: Final = Page(path="/memories", template="memories.html", show=show, label="Memories", key="m")
