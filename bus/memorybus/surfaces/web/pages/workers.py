"""Workers that are alive, and the recall jobs of each provider."""

from collections.abc import Mapping
from typing import Any

from memorybus.operations.stores import Stores
from memorybus.surfaces.web.page import Asked, Page


def show(asked: Asked) -> Mapping[str, Any]:
    """Return the workers with all that their heartbeats tell, and the jobs.

    Raises:
        LogUnavailable: Redis is away.
    """
    with Stores(asked.settings) as stores:
        workers = stores.roster.alive()
    return {"look": asked.look(), "workers": workers}


PAGE = Page(path="/workers", template="workers.html", show=show, label="Workers", key="w")
