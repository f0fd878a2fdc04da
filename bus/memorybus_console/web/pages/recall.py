"""Asks a prompt as a person's next one, and shows the answers, their times and the block."""

from collections.abc import Mapping
from typing import Any, Final

from memorybus.errors import MemoryBusError
from memorybus.recall.model import RecalledItem
from memorybus.text.display import iso
from memorybus.text.redact import masked
from starlette.responses import HTMLResponse, Response

from memorybus_console.operations.memories.browsing import KeptMemory
from memorybus_console.operations.preview import Asker, preview_prompt
from memorybus_console.views.recall import outcome_words
from memorybus_console.web import answers
from memorybus_console.web.links import event_link, link
from memorybus_console.web.page import Page, PageRequest, Part

FIELDS: Final = ("q", "user", "agent", "workspace", "session")


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the form as it was filled in, and the path of the answer if there is a prompt."""
    fields = form_fields(request)
    where = link("/recall/answer", fields) if "q" in request.query else ""
    return {"fields": fields, "answer": where}


def form_fields(request: PageRequest) -> dict[str, str]:
    """Return the fields of the form; the settings decide the scope if it is not given."""
    settings = request.settings
    own = {"user": settings.user, "agent": settings.agent, "workspace": settings.workspace}
    fields = {name: request.query.get(name, own.get(name, "")).strip() for name in FIELDS}
    return fields | {name: fields[name] or own[name] for name in ("user", "agent")}


def answer_recall(request: PageRequest) -> Response:
    """Return the fragment that shows what a prompt would be given."""
    fields = form_fields(request)
    who = Asker(fields["agent"], fields["user"], fields["workspace"], fields["session"])
    preview, problem = None, ""
    try:
        preview = preview_prompt(request.settings, fields["q"], who)
    except MemoryBusError as error:
        problem = masked(str(error), request.settings.secrets)
    items = [(item, source_link(item, fields)) for item in (preview.items if preview else ())]
    data = {
        "preview": preview,
        "items": items,
        "problem": problem,
        "outcome_of": outcome_words,
        "iso": iso,
    }
    context = answers.base_context(request.site, request.http, request.who, ()) | data
    return HTMLResponse(request.site.templates.get_template("recall_answer.html").render(context))


def source_link(item: RecalledItem, fields: Mapping[str, str]) -> str:
    """Return a link to the event of a recalled memory; "" if its event is unknown."""
    owner = (fields["agent"], fields["user"], fields["workspace"])
    return event_link(
        KeptMemory("", *owner, session=item.session, at=item.at or 0, event=item.event)
    )


PAGE: Final = Page(
    path="/recall",
    template="recall.html",
    show=show,
    label="Recall",
    key="r",
    parts=(Part("/recall/answer", answer_recall),),
)
