"""The views, one module each; see the package above for how to add one."""

from typing import Final

from memorybus.surfaces.web.page import Page
from memorybus.surfaces.web.pages import event, events, overview, tail

PAGES: Final[tuple[Page, ...]] = (overview.PAGE, events.PAGE, event.PAGE, tail.PAGE)
"""All views, in the order of the navigation."""
