"""Builds the application: pages, their acts and parts, behind one guard."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from urllib.parse import quote

from memorybus.errors import MemoryBusError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from memorybus_console.gateway.opening import OpenGateway
from memorybus_console.web import answers, health, signing, updates
from memorybus_console.web.access import Operator
from memorybus_console.web.guard import Guard
from memorybus_console.web.page import (
    Act,
    Page,
    PageRequest,
    Part,
    Site,
    carry_out,
    read_form,
    why_refused,
)
from memorybus_console.web.past import MOMENT_SECONDS

Endpoint = Callable[[Request], Awaitable[Response]]
PageEndpoint = Callable[[PageRequest], Awaitable[Response]]


def build_app(site: Site, pages: tuple[Page, ...], gateway: OpenGateway | None = None) -> ASGIApp:
    """Return the application of these pages and of a gateway, behind its guard."""
    made = Endpoints(site, pages)

    @asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[None]:
        async with made.record_past(app), gateway.running() if gateway else nullcontext():
            yield

    app = Starlette(
        routes=[*made.routes(), *(gateway.routes if gateway else ())],
        middleware=gateway.middleware() if gateway else None,
        lifespan=running,
        exception_handlers={404: made.report_missing, Exception: made.report_error},
    )
    return Guard(app, site.settings.page_hosts)


class Endpoints:
    """Creates the endpoints of pages, acts and parts."""

    def __init__(self, site: Site, pages: tuple[Page, ...]) -> None:
        self._site = site
        self._pages = pages
        self._assets = answers.asset_names()

    def routes(self) -> list[Route]:
        """Return all routes: first those that anybody may request, then those of the pages."""
        routes = [
            Route("/assets/{folder}/{name}", self._asset),
            *health.routes(self._site, self._guarded_for_strangers),
            *signing.routes(self._site),
        ]
        for page in self._pages:
            guarded = self._guarded_for_strangers if page.counts_only else self._guarded
            routes.append(Route(page.path, guarded(self._page_endpoint(page))))
            routes += [Route(part.path, guarded(self._part_endpoint(part))) for part in page.parts]
            routes += [
                Route(act.path, self._act_endpoint(act), methods=["POST"]) for act in page.acts
            ]
        return routes

    @asynccontextmanager
    async def record_past(self, _: Starlette) -> AsyncIterator[None]:
        """Record the state every few seconds while the server runs, for the charts."""
        recording = asyncio.create_task(self._record_states())
        try:
            yield
        finally:
            recording.cancel()
            await asyncio.gather(recording, return_exceptions=True)

    async def report_error(self, request: Request, _: Exception) -> Response:
        """Return the page of an unexpected error: it quotes nothing; the log has the details."""
        text = "an error in memorybus; see the log of the page's process"
        return self._message_page(request, None, text, 500)

    async def report_missing(self, request: Request, _: Exception) -> Response:
        """Return the page for an address that leads nowhere."""
        who = await run_in_threadpool(self._site.access.person, request)
        text = "there is no such page; the navigation above has those that exist"
        return self._message_page(request, who, text, 404)

    async def _record_states(self) -> None:
        while True:
            self._site.past.note(await run_in_threadpool(self._site.bus_state.read))
            await asyncio.sleep(MOMENT_SECONDS)

    async def _asset(self, request: Request) -> Response:
        name = f"{request.path_params['folder']}/{request.path_params['name']}"
        if name not in self._assets:
            return Response("no such file\n", 404)
        answer = FileResponse(answers.HERE / name)
        answer.headers["cache-control"] = "max-age=3600"
        return answer

    def _guarded_for_strangers(self, endpoint: PageEndpoint) -> Endpoint:
        """Return an endpoint that strangers may ask, unless the settings keep them out."""
        return self._guarded(endpoint, strangers=not self._site.access.is_guarded)

    def _guarded(self, endpoint: PageEndpoint, *, strangers: bool = False) -> Endpoint:
        """Return an endpoint that answers only people who are identified, or `strangers`, too."""

        async def answer(request: Request) -> Response:
            who = await run_in_threadpool(self._site.access.person, request)
            if who is None and not strangers:
                return self._refuse_stranger(request)
            try:
                return await endpoint(PageRequest(self._site, request, who))
            except MemoryBusError as error:
                return answers.error_page(self._site, request, who, self._pages, error)

        return answer

    def _refuse_stranger(self, request: Request) -> Response:
        """Return the answer to a person who is not identified: the sign-in page, or a 401."""
        wants_page = "text/html" in request.headers.get("accept", "")
        if self._site.access.uses_token and wants_page:
            return RedirectResponse(f"/signin?next={quote(request.url.path)}", 303)
        return Response("sign in first\n", 401, {"www-authenticate": "Bearer"})

    def _page_endpoint(self, page: Page) -> PageEndpoint:
        async def show(page_request: PageRequest) -> Response:
            if updates.wants_events(page_request.http):
                return updates.stream(page_request, page)
            data = await run_in_threadpool(page.show, page_request)
            flash = {"flash": self._site.access.take_message(page_request.who)}
            return answers.render_page(page_request, self._pages, page, {**flash, **data})

        return show

    def _part_endpoint(self, part: Part) -> PageEndpoint:
        async def answer(page_request: PageRequest) -> Response:
            return await run_in_threadpool(part.answer, page_request)

        return answer

    def _act_endpoint(self, act: Act) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            who = await run_in_threadpool(self._site.access.person, request)
            form = await read_form(request)
            if form is None:
                return self._message_page(request, who, "the form is too large", 413)
            refused = why_refused(self._site, request, who, form)
            if refused or who is None:
                return self._message_page(request, who, refused, 403)
            page_request = PageRequest(self._site, request, who, form)
            try:
                where = await run_in_threadpool(carry_out, act, page_request, who)
            except MemoryBusError as error:
                return answers.error_page(self._site, request, who, self._pages, error)
            return RedirectResponse(where, 303)

        return endpoint

    def _message_page(
        self, request: Request, who: Operator | None, text: str, status: int
    ) -> Response:
        return answers.message_page(self._site, request, who, self._pages, text, status)
