"""The views, one module each; the docstring of the package above says how to add one."""

from typing import Final

from memorybus_console.web.page import Page
from memorybus_console.web.pages import (
    change,
    curator,
    dead_letter,
    dead_letter_acts,
    dead_letters,
    event,
    events,
    history,
    history_diff,
    insights,
    kept,
    memories,
    overview,
    provider,
    recall,
    sessions,
    tail,
    workers,
)

PAGES: Final[tuple[Page, ...]] = (
    overview.PAGE,
    provider.PAGE,
    events.PAGE,
    event.PAGE,
    tail.PAGE,
    sessions.PAGE,
    dead_letters.PAGE,
    dead_letter.PAGE,
    dead_letter_acts.PAGE,
    recall.PAGE,
    memories.PAGE,
    kept.PAGE,
    change.PAGE,
    curator.PAGE,
    insights.PAGE,
    history.PAGE,
    history.PLAN,
    history_diff.PAGE,
    workers.PAGE,
)
"""All views, in the order of the navigation."""
