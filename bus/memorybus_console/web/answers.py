"""Builds responses: filled-in templates, and errors as people read them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from memorybus.errors import ConfigError, LogUnavailable, MemoryBusError, MissingEvent, NoWorker
from memorybus.text.display import iso, visible
from memorybus.text.redact import masked
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from memorybus_console.views import render
from memorybus_console.web.access import Operator
from memorybus_console.web.links import finding_view
from memorybus_console.web.page import NoSuchPage, Page, PageRequest, Site

HERE = Path(__file__).parent

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (LogUnavailable, 503),
    (NoWorker, 503),
    (MissingEvent, 404),
    (NoSuchPage, 404),
    (ConfigError, 409),
)


def template_environment() -> Environment:
    """Return the templates' environment, which escapes all values and their control characters."""
    environment = Environment(
        loader=PackageLoader("memorybus_console.web"),
        autoescape=True,
        finalize=_harmless,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "ago": render.ago,
        "since": render.since,
        "count": render.count,
        "duration": render.duration,
        "iso": iso,
        "short": render.short,
        "view": finding_view,
    }
    return environment


def _harmless(value: Any) -> Any:
    """Return a text with its control characters made visible; rendered markup is unchanged."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return "" if value is None else value
    return visible(value)


def render_page(
    page_request: PageRequest, pages: tuple[Page, ...], page: Page, data: Mapping[str, Any]
) -> Response:
    context = base_context(page_request.site, page_request.http, page_request.who, pages) | {
        "page": page,
        **data,
    }
    return HTMLResponse(page_request.site.templates.get_template(page.template).render(context))


def render_live(page_request: PageRequest, page: Page, data: Mapping[str, Any]) -> str:
    """Return the block ``live`` of a page, which is rendered again while the page is open."""
    template = page_request.site.templates.get_template(page.template)
    context = template.new_context(
        base_context(page_request.site, page_request.http, page_request.who, ()) | {**data}
    )
    return "".join(template.blocks["live"](context))


def base_context(
    site: Site, request: Request, who: Operator | None, pages: tuple[Page, ...]
) -> dict[str, Any]:
    """Return the values that every template may use."""
    return {
        "now_ms": site.clock.now_ms(),
        "path": request.url.path,
        "query": request.query_params,
        "pages": [page for page in pages if page.label],
        "page": None,
        "who": who,
        "uses_token": site.access.uses_token,
        "namespace": site.settings.namespace,
    }


def error_page(
    site: Site,
    request: Request,
    who: Operator | None,
    pages: tuple[Page, ...],
    error: MemoryBusError,
) -> Response:
    """Return a page that says why something cannot be shown or done."""
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    text = masked(str(error), site.settings.secrets)
    return message_page(site, request, who, pages, text, status)


def message_page(
    site: Site,
    request: Request,
    who: Operator | None,
    pages: tuple[Page, ...],
    text: str,
    status: int,
) -> Response:
    context = base_context(site, request, who, pages) | {
        "text": text,
        "status": status,
        "flash": "",
    }
    return HTMLResponse(site.templates.get_template("message.html").render(context), status)


def asset_names() -> frozenset[str]:
    """Return the files that may be requested: our own, and those from other projects."""
    return frozenset(
        f"{folder}/{path.name}"
        for folder in ("static", "vendor")
        for path in (HERE / folder).iterdir()
        if path.suffix in (".js", ".css", ".svg")
    )
