"""Shows the curator's runs and what one of them changed; runs it, and takes a run back."""

from collections.abc import Mapping
from typing import Any

from memorybus.errors import ConfigError

from memorybus_console.actions.curation import (
    AcceptRepetitions,
    RejectProposals,
    RunCurator,
    UndoCuration,
)
from memorybus_console.operations import curation
from memorybus_console.web.page import Act, Page, PageRequest

_MAX_LINES = 200
"""The most changes that are shown of a run; `memorybus curator report` shows all."""


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the runs, and one of them with its changes: the last one, or the one that is named.

    Raises:
        LogError: Redis is away.
    """
    status = curation.read_status(request.settings)
    number = _number_of(request.query.get("run", ""), status)
    report = curation.read_report(request.settings, number) if status.runs else None
    return {"curator": status, "report": report, "most": _MAX_LINES}


def _number_of(name: str, status: curation.CuratorStatus) -> int:
    if not name:
        return 1
    for number, run in enumerate(status.runs, start=1):
        if run.run == name:
            return number
    raise ConfigError(f"no run {name!r} is known; see the list of runs: /curator")


def _here(_: PageRequest) -> str:
    return PAGE.path


PAGE = Page(
    path="/curator",
    template="curator.html",
    show=show,
    label="Curator",
    key="c",
    acts=(
        Act("/curator/run", RunCurator, _here),
        Act("/curator/{run}/undo", UndoCuration, _here),
        Act("/curator/{run}/accept", AcceptRepetitions, _here),
        Act("/curator/{run}/reject", RejectProposals, _here),
    ),
)
