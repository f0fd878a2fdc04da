"""Carries an act out: checks who may do it, records it in the log with its reason, and does it."""

import msgspec
from memorybus.errors import MemoryBusError
from memorybus.events import OperatorActed
from memorybus.text.redact import masked
from starlette.requests import Request

from memorybus_console.operations import audit
from memorybus_console.web.access import Operator
from memorybus_console.web.page import Act, ActResult, PageRequest
from memorybus_console.web.site import Site

_MAX_FIELD_CHARS = 1_000
"""The most characters of a reason, or of another field, that the log records."""


def why_refused(site: Site, request: Request, who: Operator | None, form: dict[str, str]) -> str:
    """Return why a person may not act now; "" if they may."""
    if who is None:
        return "sign in first"
    if not site.access.is_own_form(request, who, form.get("proof", "")):
        return "this form is not from this page, or is too old: load the page again"
    if not form.get("why", "").strip():
        return "give a reason: it is recorded with what you do"
    return ""


def carry_out(act: Act, page_request: PageRequest, who: Operator) -> ActResult:
    """Record in the log what is about to be done, and do it; record also if that fails.

    Raises:
        MemoryBusError: the log cannot be written, and nothing was done; or the act failed.
    """
    record = _recorded_act(act, page_request, who)
    audit.record_act(page_request.settings, record)
    try:
        done = act.do(page_request)
    except MemoryBusError as error:
        failed = masked(str(error), page_request.settings.secrets)[:_MAX_FIELD_CHARS]
        audit.record_act(page_request.settings, msgspec.structs.replace(record, failed=failed))
        raise
    finally:
        page_request.site.bus_state.forget()
    page_request.site.access.keep_message(who, done.message)
    return done


def _recorded_act(act: Act, page_request: PageRequest, who: Operator) -> OperatorActed:
    about = {name: str(value) for name, value in page_request.path.items()}
    about |= {name: page_request.form[name] for name in act.recorded if page_request.form.get(name)}
    return OperatorActed(
        act=act.what,
        operator=who.name,
        reason=page_request.reason[:_MAX_FIELD_CHARS],
        about={name: value[:_MAX_FIELD_CHARS] for name, value in about.items()},
    )
