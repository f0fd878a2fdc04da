"""The overview: what is wrong, and how far each provider is."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from memorybus.surfaces.web.page import Asked, Page, Part


def show(asked: Asked) -> Mapping[str, Any]:
    """Return the look that all share."""
    return {"look": asked.look()}


def past(asked: Asked) -> Response:
    """Return what was seen in the last hour, as the chart wants it."""
    body = msgspec.json.encode(asked.site.past.series())
    return Response(body, media_type="application/json")


PAGE = Page(
    path="/",
    template="overview.html",
    show=show,
    label="Overview",
    key="o",
    parts=(Part("/past.json", past),),
)
