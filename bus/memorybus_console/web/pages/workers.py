"""Shows the live workers, and the recall jobs of each provider."""

from collections.abc import Mapping
from typing import Any

from memorybus_console.operations.stores import Stores
from memorybus_console.web.page import Page, PageRequest


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the workers with everything that their heartbeats report, and the jobs."""
    with Stores(request.settings) as stores:
        workers = stores.roster.alive()
    return {"bus": request.bus_state(), "workers": workers}


PAGE = Page(path="/workers", template="workers.html", show=show, label="Workers", key="w")
