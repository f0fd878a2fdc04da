"""Answers: a template filled in, an error as people read it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from memorybus.errors import ConfigError, LogUnavailable, MemoryBusError, MissingEvent, NoWorker
from memorybus.surfaces.views import shown
from memorybus.surfaces.web.access import Person
from memorybus.surfaces.web.page import Asked, Page
from memorybus.surfaces.web.site import Site
from memorybus.text.display import visible
from memorybus.text.redact import masked

HERE = Path(__file__).parent

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (LogUnavailable, 503),
    (NoWorker, 503),
    (MissingEvent, 404),
    (ConfigError, 409),
)


def environment() -> Environment:
    """Return the templates; everything that they print is escaped, and steers nothing."""
    found = Environment(
        loader=PackageLoader("memorybus.surfaces.web"),
        autoescape=True,
        finalize=_harmless,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "ago": shown.ago,
        "since": shown.since,
        "count": shown.count,
        "duration": shown.duration,
        "short": shown.short,
    }
    return found


def _harmless(value: Any) -> Any:
    """Return a text with its steering characters made visible; a part of a template as it is."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return "" if value is None else value
    return visible(value)


def whole(asked: Asked, pages: tuple[Page, ...], page: Page, data: Mapping[str, Any]) -> Response:
    """Return a page of a view."""
    context = base(asked.site, asked.request, asked.who, pages) | {"page": page, **data}
    return HTMLResponse(asked.site.templates.get_template(page.template).render(context))


def block(asked: Asked, page: Page, data: Mapping[str, Any]) -> str:
    """Return the part of a page that is rendered again while somebody looks."""
    template = asked.site.templates.get_template(page.template)
    context = template.new_context(base(asked.site, asked.request, asked.who, ()) | {**data})
    return "".join(template.blocks["live"](context))


def base(
    site: Site, request: Request, who: Person | None, pages: tuple[Page, ...]
) -> dict[str, Any]:
    """Return what every template may use."""
    return {
        "now_ms": site.clock.now_ms(),
        "path": request.url.path,
        "query": request.query_params,
        "pages": [one for one in pages if one.label],
        "page": None,
        "who": who,
        "may_act": who is not None,
        "by_token": site.access.by_token,
        "namespace": site.settings.namespace,
    }


def failed(
    site: Site, request: Request, who: Person | None, pages: tuple[Page, ...], error: MemoryBusError
) -> Response:
    """Return the page that says why something cannot be shown or done."""
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    said = masked(str(error), site.settings.secrets)
    return told(site, request, who, pages, said, status)


def told(
    site: Site,
    request: Request,
    who: Person | None,
    pages: tuple[Page, ...],
    said: str,
    status: int,
) -> Response:
    """Return a page with one sentence."""
    context = base(site, request, who, pages) | {"said": said, "status": status, "flash": ""}
    return HTMLResponse(site.templates.get_template("told.html").render(context), status)


def asset_names() -> frozenset[str]:
    """Return the files that may be asked for: ours, and those of others."""
    return frozenset(
        f"{folder}/{one.name}"
        for folder in ("static", "vendor")
        for one in (HERE / folder).iterdir()
        if one.suffix in (".js", ".css", ".svg")
    )
