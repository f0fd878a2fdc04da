"""How an act is carried out: by whom, why, told to the log, and then done."""

import msgspec
from starlette.requests import Request

from memorybus.errors import MemoryBusError
from memorybus.events import OperatorActed
from memorybus.operations import audit
from memorybus.surfaces.web.access import Person
from memorybus.surfaces.web.page import Act, Asked, Done
from memorybus.surfaces.web.site import Site
from memorybus.text.redact import masked

_LONGEST = 1_000
"""Characters of a reason, or of what it is about, that the log is told."""


def refused(site: Site, request: Request, who: Person | None, form: dict[str, str]) -> str:
    """Return why somebody may not act now; "" if they may."""
    if not site.access.is_guarded:
        return (
            "this page only shows: to act, set page_token (memorybus config page-token makes "
            "one) or page_proxy_header, and start it again"
        )
    if who is None:
        return "sign in first"
    if not site.access.is_own_form(request, who, form.get("proof", "")):
        return "this form is not of this page, or is too old: load the page again"
    if not form.get("why", "").strip():
        return "say why: the reason is kept beside what you do"
    return ""


def carried_out(act: Act, asked: Asked, who: Person) -> Done:
    """Tell the log what is about to be done, and do it; tell it again if that fails.

    Raises:
        MemoryBusError: the log cannot be told, and nothing was done; or it could not be done.
    """
    told = _told(act, asked, who)
    audit.record_act(asked.settings, told)
    try:
        done = act.do(asked)
    except MemoryBusError as error:
        failed = masked(str(error), asked.settings.secrets)[:_LONGEST]
        audit.record_act(asked.settings, msgspec.structs.replace(told, failed=failed))
        raise
    finally:
        asked.site.looks.forget()
    asked.site.access.say(who, done.said)
    return done


def _told(act: Act, asked: Asked, who: Person) -> OperatorActed:
    about = {name: str(value) for name, value in asked.path.items()}
    about |= {name: asked.form[name] for name in act.told if asked.form.get(name)}
    return OperatorActed(
        act=act.what,
        operator=who.name,
        reason=asked.reason[:_LONGEST],
        about={name: value[:_LONGEST] for name, value in about.items()},
    )
