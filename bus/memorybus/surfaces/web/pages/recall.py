"""Recall: a prompt asked as a person's next one: who says what, why, how soon; the very block."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import HTMLResponse, Response

from memorybus.errors import MemoryBusError
from memorybus.operations.memories.browsing import KeptMemory
from memorybus.recall.asking import Asker, preview_prompt
from memorybus.recall.model import RecalledItem
from memorybus.surfaces.views.prompt import outcome_words
from memorybus.surfaces.web import answers
from memorybus.surfaces.web.kept_links import event_link, link
from memorybus.surfaces.web.page import Asked, Page, Part
from memorybus.text.display import iso
from memorybus.text.redact import masked

TIMEOUT: Final = 5.0
"""Seconds for which late answers are waited for."""

FIELDS: Final = ("q", "user", "agent", "workspace", "session")


def show(asked: Asked) -> Mapping[str, Any]:
    """Return the form as it was filled in, and where the answer is, if something is asked."""
    fields = fields_of(asked)
    where = link("/recall/answer", fields) if "q" in asked.query else ""
    return {"fields": fields, "answer": where}


def fields_of(asked: Asked) -> dict[str, str]:
    """Return the fields of the form; whom the settings name, where nobody is named."""
    settings = asked.settings
    own = {"user": settings.user, "agent": settings.agent, "workspace": settings.workspace}
    fields = {name: asked.query.get(name, own.get(name, "")).strip() for name in FIELDS}
    return fields | {name: fields[name] or own[name] for name in ("user", "agent")}


def answer(asked: Asked) -> Response:
    """Return what a prompt would be given, as a part of the page."""
    fields = fields_of(asked)
    who = Asker(fields["agent"], fields["user"], fields["workspace"], fields["session"])
    found, problem = None, ""
    try:
        found = preview_prompt(asked.settings, fields["q"], who, timeout=TIMEOUT)
    except MemoryBusError as error:
        problem = masked(str(error), asked.settings.secrets)
    items = [(one, where_from(one, fields)) for one in (found.items if found else ())]
    data = {"found": found, "items": items, "problem": problem, "said": outcome_words, "iso": iso}
    context = answers.base(asked.site, asked.request, asked.who, ()) | data
    return HTMLResponse(asked.site.templates.get_template("recall_answer.html").render(context))


def where_from(one: RecalledItem, fields: Mapping[str, str]) -> str:
    """Return where the event of something recalled is shown; "" if nobody knows it."""
    owner = (fields["agent"], fields["user"], fields["workspace"])
    return event_link(KeptMemory("", *owner, session=one.session, at=one.at or 0, event=one.event))


PAGE: Final = Page(
    path="/recall",
    template="recall.html",
    show=show,
    label="Recall",
    key="r",
    parts=(Part("/recall/answer", answer),),
)
