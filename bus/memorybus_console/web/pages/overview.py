"""Shows the findings, and each provider's progress."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from memorybus_console.web.page import Page, PageRequest, Part


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the state of the bus, which all requests share; for strangers without quotations."""
    bus = request.bus_state()
    return {"bus": bus if request.who else bus.without_quotations()}


def answer_past(request: PageRequest) -> Response:
    """Return the figures of the last hour for the charts."""
    body = msgspec.json.encode(request.site.past.series())
    return Response(body, media_type="application/json")


PAGE = Page(
    path="/",
    template="overview.html",
    show=show,
    label="Overview",
    key="o",
    parts=(Part("/past.json", answer_past),),
    counts_only=True,
)
