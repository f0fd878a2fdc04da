"""Recall: a prompt asked as a person's next one: who says what, why, how soon; the very block."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import HTMLResponse, Response

from memorybus.errors import MemoryBusError
from memorybus.recall.asking import WhoAsks, asked_prompt
from memorybus.surfaces.views.prompt import outcome_words
from memorybus.surfaces.web import answers
from memorybus.surfaces.web.kept_links import link
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
    who = WhoAsks(fields["agent"], fields["user"], fields["workspace"], fields["session"])
    data: dict[str, Any] = {"found": None, "problem": "", "said": outcome_words, "iso": iso}
    try:
        data["found"] = asked_prompt(asked.settings, fields["q"], who, timeout=TIMEOUT)
    except MemoryBusError as error:
        data["problem"] = masked(str(error), asked.settings.secrets)
    context = answers.base(asked.site, asked.request, asked.who, ()) | data
    return HTMLResponse(asked.site.templates.get_template("recall_answer.html").render(context))


PAGE: Final = Page(
    path="/recall",
    template="recall.html",
    show=show,
    label="Recall",
    key="r",
    parts=(Part("/recall/answer", answer),),
)
