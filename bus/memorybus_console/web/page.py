"""What a view consists of: a page, its acts, and data for its script; and how it is requested."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

from jinja2 import Environment
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.health.verdict import BusState, BusStateCache
from starlette.requests import Request
from starlette.responses import Response

from memorybus_console.actions.action import Action, Ground, ShowProgress, no_progress, perform
from memorybus_console.result import Result
from memorybus_console.web.access import Access, Operator
from memorybus_console.web.past import Past
from memorybus_console.web.tasks import PageTasks


@dataclass(frozen=True)
class Site:
    """The page of a bus.

    Attributes:
        ends: set when the server ends, so that open streams end, too.
    """

    settings: Settings
    clock: Clock
    bus_state: BusStateCache  # the state of the bus, read once a second at most
    past: Past  # the figures of the last hour
    access: Access
    tasks: PageTasks  # tasks that take longer than a request
    templates: Environment
    ends: asyncio.Event = field(default_factory=asyncio.Event)


MAX_BYTES = 1 << 20  # the most bytes of a form that are read


@dataclass(frozen=True)
class PageRequest:
    """One request for a view.

    Attributes:
        form: the fields of a POST, each with its last value.
    """

    site: Site
    http: Request
    who: Operator | None = None  # the person; None for a stranger, who sees only counts
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        return self.site.settings

    @property
    def path(self) -> Mapping[str, str]:
        return self.http.path_params

    @property
    def query(self) -> Mapping[str, str]:
        return self.http.query_params

    @property
    def reason(self) -> str:
        """Return the reason for an act, from the form's field ``why``."""
        return self.form.get("why", "").strip()

    @property
    def operator(self) -> str:
        return self.who.name if self.who else ""

    def bus_state(self) -> BusState:
        """Return the state of the bus, no older than a second."""
        return self.site.bus_state.read()


@dataclass(frozen=True)
class Act:
    """Something that a page changes, by POST.

    Attributes:
        fields: returns the action's fields, beside the reason; by default those of the path.
        runs_long: whether it takes longer than a request, so that a thread carries it out.
    """

    path: str
    kind: type[Action[Any, Any]]
    where: Callable[[PageRequest], str]  # returns the path that is shown next
    fields: Callable[[PageRequest], Mapping[str, Any]] = lambda request: request.path
    runs_long: bool = False

    def action(self, request: PageRequest) -> Action[Any, Any]:
        """Return what a request asks for."""
        return self.kind(**self.fields(request), reason=request.reason)


@dataclass(frozen=True)
class Part:
    """Something that a page's script requests: JSON, or a fragment."""

    path: str
    answer: Callable[[PageRequest], Response]  # creates the response, on a thread


@dataclass(frozen=True)
class Page:
    """A view.

    Attributes:
        counts_only: whether it and its parts show nothing but counts to a person who is not
            identified.
    """

    path: str  # its path as Starlette writes it: `/providers/{name}`
    template: str  # its file in `templates`
    show: Callable[[PageRequest], Mapping[str, Any]]  # returns the template's data, on a thread
    label: str = ""  # its name in the navigation; "" to leave it out there
    key: str = ""  # the key of the keyboard that opens it; "" for none
    acts: tuple[Act, ...] = ()
    parts: tuple[Part, ...] = ()
    counts_only: bool = False


async def read_form(request: Request) -> dict[str, str] | None:
    """Return the fields of a form, each with its last value; None if the form is too large."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BYTES:
            return None
    text = body.decode("utf-8", "replace")
    return dict(parse_qsl(text, keep_blank_values=True))


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
    """Carry an act out, or begin it if it runs long; return the path that is shown next."""
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
    provider = request.path["provider"]
    request.site.tasks.begin(
        *(action.title, provider, request.operator),
        lambda tell: _perform(action, request, tell),
    )
    return f"{action.title} of {provider} has begun"


class NoSuchPage(MemoryBusError):
    """The address names nothing that exists."""
