"""Names the view in which an operator looks into a finding, and acts; pure."""

from typing import Final, NamedTuple
from urllib.parse import quote

from memorybus.health.finding import Code, Finding


class FindingView(NamedTuple):
    """A link: its path, and its text."""

    path: str
    label: str


_VIEWS: Final[dict[Code, FindingView]] = {
    "failing": FindingView("/providers/{name}#retry-now", "Retry now"),
    "paused": FindingView("/providers/{name}#resume", "Resume"),
    "lane_halted": FindingView("/providers/{name}#lanes", "Lanes"),
    "behind": FindingView("/providers/{name}#lanes", "Lanes"),
    "hot_lane": FindingView("/providers/{name}#lanes", "Lanes"),
    "unserved": FindingView("/providers/{name}#lanes", "Lanes"),
    "dead_letters": FindingView("/dead?provider={name}", "Dead letters"),
    "recalls": FindingView("/workers#jobs", "Recall jobs"),
    "no_worker": FindingView("/workers", "Workers"),
    "worker_gone": FindingView("/workers", "Workers"),
    "versions": FindingView("/workers", "Workers"),
    "spool": FindingView("/workers#spools", "Spools"),
    "archive": FindingView("/history", "History"),
    "archive_ahead": FindingView("/history", "History"),
    "data_loss": FindingView("/history", "History"),
}
"""Findings about Redis itself have no view: what they need is done at the server."""


def finding_view(finding: Finding) -> FindingView | None:
    """Return the link to a finding's view; None if no view has more about it."""
    view = _VIEWS.get(finding.code)
    if view is None:
        return None
    name = quote(finding.subject.partition(":")[0], safe="")
    return view._replace(path=view.path.format(name=name))
