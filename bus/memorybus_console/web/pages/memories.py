"""Shows the people about whom providers keep memories, page by page."""

from collections.abc import Mapping
from typing import Any, Final

from memorybus_console.operations.memories import browsing
from memorybus_console.operations.memories.browsing import OwnerNames, Person
from memorybus_console.web.links import link
from memorybus_console.web.page import Page, PageRequest

_AFTER = ("after_agent", "after_user", "after_workspace")


def show(request: PageRequest) -> Mapping[str, Any]:
    containing = request.query.get("name", "").strip()
    page = browsing.list_people(
        request.settings, start_of_page(request.query), containing=containing
    )
    providers = list(dict.fromkeys(name for person in page.people for name in person.memories))
    more = ""
    if page.more and page.people:
        last = dict(zip(_AFTER, page.people[-1].owner, strict=True))
        more = link("/memories", {"name": containing}, last)
    return {
        "name": containing,
        "providers": providers,
        "people": [(person, memory_links(person)) for person in page.people],
        "unanswered": page.unanswered,
        "more": more,
    }


def start_of_page(fields: Mapping[str, str]) -> OwnerNames | None:
    """Return the person after whom the page begins; None for the first page."""
    if _AFTER[0] not in fields:
        return None
    agent, user, workspace = (fields.get(name, "") for name in _AFTER)
    return agent, user, workspace


def memory_links(person: Person) -> dict[str, str]:
    owner = {"user": person.user, "agent": person.agent, "workspace": person.workspace}
    return {name: link("/memories/kept", owner, {"provider": name}) for name in person.memories}


PAGE: Final = Page(path="/memories", template="memories.html", show=show, label="Memories", key="m")
