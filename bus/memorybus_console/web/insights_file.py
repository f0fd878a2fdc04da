"""Insights as one HTML file that needs no script, no font and no other file; extra `web`."""

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any

from markupsafe import Markup
from memorybus.insights.report import Insights

from memorybus_console.views.insights import (
    WEEKDAYS,
    days_of,
    heading,
    sections,
    shade,
    totals,
)
from memorybus_console.web.answers import HERE, template_environment


def figures_view(insights: Insights, zone: tzinfo) -> Mapping[str, Any]:
    """Return what the macro ``figures`` of ``insights_figures.html`` shows."""
    return {
        "insights": insights,
        "heading": heading(insights),
        "totals": totals(insights),
        "bars": days_of(insights, zone),
        "tables": sections(insights, zone),
        "weekdays": WEEKDAYS,
        "shade": shade,
    }


def insights_html(insights: Insights, zone: tzinfo) -> str:
    """Return the file's text; every name in it is escaped."""
    css = (HERE / "static" / "page.css").read_text(encoding="utf-8")
    template = template_environment().get_template("insights_file.html")
    style = Markup("<style>{}</style>").format(Markup(css))  # noqa: S704  our own file
    return template.render(view=figures_view(insights, zone), style=style)
