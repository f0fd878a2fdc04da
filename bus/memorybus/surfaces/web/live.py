"""A page that stays up to date: its block ``live`` again and again, as server-sent events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from memorybus.errors import MemoryBusError
from memorybus.surfaces.web import answers
from memorybus.surfaces.web.page import Asked, Page

EVERY = 2.0
"""Seconds between two."""


def is_wanted(request: Request) -> bool:
    """Say whether a script asks for events, and no browser for a page."""
    return "text/event-stream" in request.headers.get("accept", "")


def stream(asked: Asked, page: Page) -> Response:
    """Return the events of a page, until who asks goes or the server ends."""
    return StreamingResponse(_events(asked, page), media_type="text/event-stream")


async def _events(asked: Asked, page: Page) -> AsyncIterator[str]:
    last = ""
    while not asked.site.ends.is_set() and _may_look(asked):
        with suppress(MemoryBusError):  # the next time it may go well
            text = await run_in_threadpool(_text, asked, page)
            yield event(text) if text != last else ": as before\n\n"
            last = text
        with suppress(TimeoutError):
            await asyncio.wait_for(asked.site.ends.wait(), EVERY)


def _may_look(asked: Asked) -> bool:
    """Say whether who asked may still look: they may have signed out."""
    access = asked.site.access
    return not access.is_guarded or access.person(asked.request) is not None


def _text(asked: Asked, page: Page) -> str:
    return answers.block(asked, page, page.show(asked))


def event(text: str) -> str:
    """Return a text as one server-sent event; pure."""
    lines = text.replace("\r", "\n").split("\n")
    return "".join(f"data: {line}\n" for line in lines) + "\n"
