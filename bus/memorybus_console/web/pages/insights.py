"""Shows the figures of what agents did, as `memorybus insights --html` writes them."""

from collections.abc import Mapping
from typing import Any, Final

from memorybus.errors import MemoryBusError
from memorybus.insights.reading import chosen_zone, read_insights
from memorybus.text.redact import masked

from memorybus_console.web.insights_file import figures_view
from memorybus_console.web.links import number_of
from memorybus_console.web.page import Page, PageRequest

_FIELDS: Final = ("days", "agent", "user", "platform", "zone")
_DAYS: Final = 30


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the figures, or why they cannot be counted, and the form as it was filled in."""
    fields = {name: request.query.get(name, "").strip() for name in _FIELDS}
    days = number_of(fields, "days", _DAYS)
    names = {name: fields[name] or None for name in ("agent", "user", "platform")}
    view, problem = None, ""
    try:
        zone = chosen_zone(request.settings, fields["zone"])
        insights = read_insights(
            request.settings,
            days=days,
            zone=fields["zone"],
            clock=request.site.clock,
            **names,
        )
        view = figures_view(insights, zone)
    except MemoryBusError as error:
        problem = masked(str(error), request.settings.secrets)
    return {"fields": fields | {"days": days}, "view": view, "problem": problem}


PAGE: Final = Page(path="/insights", template="insights.html", show=show, label="Insights", key="i")
