"""The parts of a view: a page, its acts, which change something, and data for its script."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.health.verdict import BusState
from starlette.requests import Request
from starlette.responses import Response

from memorybus_console.actions.action import Action
from memorybus_console.web.access import Operator
from memorybus_console.web.site import Site


class NoSuchPage(MemoryBusError):
    """The address names nothing that exists."""


@dataclass(frozen=True)
class PageRequest:
    """One request for a view.

    Attributes:
        who: the person; None for a stranger, who sees only counts.
        form: the fields of a POST, each with its last value.
    """

    site: Site
    http: Request
    who: Operator | None = None
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """Return the settings of the bus."""
        return self.site.settings

    @property
    def path(self) -> Mapping[str, str]:
        """Return the parameters in the path."""
        return self.http.path_params

    @property
    def query(self) -> Mapping[str, str]:
        """Return the parameters of the query string."""
        return self.http.query_params

    @property
    def reason(self) -> str:
        """Return the reason for an act, from the form's field ``why``."""
        return self.form.get("why", "").strip()

    @property
    def operator(self) -> str:
        """Return the name of the person who acts, for records."""
        return self.who.name if self.who else ""

    def bus_state(self) -> BusState:
        """Return the state of the bus, no older than a second."""
        return self.site.bus_state.read()


@dataclass(frozen=True)
class Act:
    """Something that a page changes, by POST.

    Attributes:
        where: returns the path that is shown next.
        runs_long: whether it takes longer than a request, so that a thread carries it out.
    """

    path: str
    action: Callable[[PageRequest], Action[Any, Any]]
    where: Callable[[PageRequest], str]
    runs_long: bool = False


@dataclass(frozen=True)
class Part:
    """Something that a page's script requests: JSON, or a fragment.

    Attributes:
        answer: creates the response, on a thread.
    """

    path: str
    answer: Callable[[PageRequest], Response]


@dataclass(frozen=True)
class Page:
    """A view.

    Attributes:
        path: its path as Starlette writes it: ``/providers/{name}``.
        template: its file in ``templates``.
        show: returns the template's data, on a thread.
        label: its name in the navigation; "" to leave it out there.
        counts_only: whether it and its parts show nothing but counts to a person who is not
            identified.
    """

    path: str
    template: str
    show: Callable[[PageRequest], Mapping[str, Any]]
    label: str = ""
    key: str = ""
    acts: tuple[Act, ...] = ()
    parts: tuple[Part, ...] = ()
    counts_only: bool = False
