"""Keeps an open page up to date: sends its block ``live`` again as server-sent events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from memorybus.errors import MemoryBusError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from memorybus_console.web import answers
from memorybus_console.web.page import Page, PageRequest

RENDER_SECONDS = 2.0  # seconds between two renderings


def wants_events(request: Request) -> bool:
    """Return whether a script requests server-sent events, instead of a browser the page."""
    return "text/event-stream" in request.headers.get("accept", "")


def stream(page_request: PageRequest, page: Page) -> Response:
    """Return the events of a page, which end when the browser leaves or the server ends."""
    return StreamingResponse(_events(page_request, page), media_type="text/event-stream")


async def _events(page_request: PageRequest, page: Page) -> AsyncIterator[str]:
    last = ""
    while not page_request.site.ends.is_set() and _may_look(page_request, page):
        with suppress(MemoryBusError):  # the next rendering may succeed
            text = await run_in_threadpool(_render, page_request, page)
            yield server_sent_event(text) if text != last else ": as before\n\n"
            last = text
        with suppress(TimeoutError):
            await asyncio.wait_for(page_request.site.ends.wait(), RENDER_SECONDS)


def _may_look(page_request: PageRequest, page: Page) -> bool:
    """Return whether the person may still look: they may have signed out since."""
    access = page_request.site.access
    if page.counts_only and page_request.who is None:
        return not access.is_guarded
    return access.person(page_request.http) is not None


def _render(page_request: PageRequest, page: Page) -> str:
    return answers.render_live(page_request, page, page.show(page_request))


def server_sent_event(text: str) -> str:
    """Return a text as one server-sent event; pure."""
    lines = text.replace("\r", "\n").split("\n")
    return "".join(f"data: {line}\n" for line in lines) + "\n"
