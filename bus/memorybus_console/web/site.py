"""The objects that all views share."""

import asyncio
from dataclasses import dataclass, field

from jinja2 import Environment
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.health.verdict import BusStateCache

from memorybus_console.web.access import Access
from memorybus_console.web.past import Past
from memorybus_console.web.tasks import PageTasks


@dataclass(frozen=True)
class Site:
    """The page of a bus.

    Attributes:
        bus_state: the state of the bus, read once a second at most.
        past: the figures of the last hour.
        tasks: tasks that take longer than a request.
        ends: set when the server ends, so that open streams end, too.
    """

    settings: Settings
    clock: Clock
    bus_state: BusStateCache
    past: Past
    access: Access
    tasks: PageTasks
    templates: Environment
    ends: asyncio.Event = field(default_factory=asyncio.Event)
