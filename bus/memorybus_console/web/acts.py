"""Carries an act of the page out: checks who may do it, and performs its action."""

from typing import Final

from starlette.requests import Request

from memorybus_console.actions.action import Action, Ground, ShowProgress, no_progress, perform
from memorybus_console.result import Result
from memorybus_console.web.access import Operator
from memorybus_console.web.page import Act, PageRequest
from memorybus_console.web.site import Site

WAIT_SECONDS: Final = 5.0
"""Seconds to wait for workers; what they have not done by then, they do later."""


def why_refused(site: Site, request: Request, who: Operator | None, form: dict[str, str]) -> str:
    """Return why a person may not act now; "" if they may."""
    if who is None:
        return "sign in first"
    if not site.access.is_own_form(request, who, form.get("proof", "")):
        return "this form is not from this page, or is too old: load the page again"
    return ""


def carry_out(act: Act, request: PageRequest, who: Operator) -> str:
    """Carry an act out, or begin it if it runs long; return the path that is shown next.

    Raises:
        MemoryBusError: the log cannot be written, and nothing was done; or the act failed.
    """
    action = act.action(request)
    try:
        message = _begin(action, request) if act.runs_long else _perform(action, request)
    finally:
        request.site.bus_state.forget()
    request.site.access.keep_message(who, message)
    return act.where(request)


def _perform(
    action: Action[object, Result], request: PageRequest, progress: ShowProgress = no_progress
) -> str:
    """Perform an action; return its result in words."""
    ground = Ground(request.settings, request.operator, WAIT_SECONDS, progress, request.site.clock)
    done = perform(action, ground)
    return "; ".join(done.sentences())


def _begin(action: Action[object, Result], request: PageRequest) -> str:
    """Let a thread perform an action on a provider."""
    provider = request.path["name"]
    request.site.tasks.begin(
        *(action.title, provider, request.operator),
        lambda tell: _perform(action, request, tell),
    )
    return f"{action.title} of {provider} has begun"
