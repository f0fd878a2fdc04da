"""What all views share, put together once."""

import asyncio
from dataclasses import dataclass, field

from jinja2 import Environment

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.health.looks import LookCache
from memorybus.surfaces.web.access import Access
from memorybus.surfaces.web.errands import Errands
from memorybus.surfaces.web.past import Past


@dataclass(frozen=True)
class Site:
    """One page of a bus.

    Attributes:
        settings: of the bus.
        clock: time.
        looks: the status, looked at once a second.
        past: what was seen in the last hour.
        access: who may look, and who may act.
        errands: what takes longer than a request.
        templates: the templates.
        ends: set once the server ends, so that nobody keeps it.
    """

    settings: Settings
    clock: Clock
    looks: LookCache
    past: Past
    access: Access
    errands: Errands
    templates: Environment
    ends: asyncio.Event = field(default_factory=asyncio.Event)
