"""What a view is made of: a page, what it changes, what its script asks for besides."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from memorybus.config.settings import Settings
from memorybus.health.looks import Look
from memorybus.surfaces.web.access import Person
from memorybus.surfaces.web.site import Site


@dataclass(frozen=True)
class Asked:
    """One request, as a view sees it.

    Attributes:
        site: what all views share.
        request: the request itself.
        who: who asks; None if anybody may look and nobody may act.
        form: the fields of a POST; of one field the last value.
    """

    site: Site
    request: Request
    who: Person | None = None
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """Return the settings of the bus."""
        return self.site.settings

    @property
    def path(self) -> Mapping[str, str]:
        """Return the parameters in the path."""
        return self.request.path_params

    @property
    def query(self) -> Mapping[str, str]:
        """Return the parameters behind the question mark."""
        return self.request.query_params

    @property
    def reason(self) -> str:
        """Return why somebody acts, in the form's field ``why``."""
        return self.form.get("why", "").strip()

    @property
    def operator(self) -> str:
        """Return who acts, as records name them."""
        return self.who.name if self.who else ""

    def look(self) -> Look:
        """Return a look at the bus that is no older than a second."""
        return self.site.looks.look()


@dataclass(frozen=True)
class Done:
    """What an act came to.

    Attributes:
        said: what happened, for who acted.
        where: the path that is shown then.
    """

    said: str
    where: str


@dataclass(frozen=True)
class Act:
    """Something that a page changes, by POST.

    Attributes:
        path: where its form is sent.
        what: what it does, as the log is told: "pause provider".
        do: does it, on a thread; it raises `MemoryBusError` where it cannot.
        told: the names of form fields that the log is told as well. Never a field with what a
            person said: what is told stays in the log.
    """

    path: str
    what: str
    do: Callable[[Asked], Done]
    told: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """Something that a page's script asks for: JSON, or a fragment.

    Attributes:
        path: where.
        answer: makes the response, on a thread.
    """

    path: str
    answer: Callable[[Asked], Response]


@dataclass(frozen=True)
class Page:
    """A view.

    Attributes:
        path: where, as Starlette writes paths: ``/providers/{name}``.
        template: its file in ``templates``.
        show: returns the template's data, on a thread.
        label: its name in the navigation; "" if it is not there.
        key: the key that opens it.
        acts: what it changes.
        parts: what its script asks for.
    """

    path: str
    template: str
    show: Callable[[Asked], Mapping[str, Any]]
    label: str = ""
    key: str = ""
    acts: tuple[Act, ...] = ()
    parts: tuple[Part, ...] = ()
