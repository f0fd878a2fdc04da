"""The application: pages, their acts and parts, under one guard."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from memorybus.errors import MemoryBusError
from memorybus.surfaces.web import acting, answers, forms, health, live, signing
from memorybus.surfaces.web.access import Person
from memorybus.surfaces.web.guard import Guard
from memorybus.surfaces.web.page import Act, Asked, Page, Part
from memorybus.surfaces.web.past import EVERY
from memorybus.surfaces.web.site import Site

Endpoint = Callable[[Request], Awaitable[Response]]


def build(site: Site, pages: tuple[Page, ...]) -> ASGIApp:
    """Return the application of these pages, behind its guard."""
    made = App(site, pages)
    app = Starlette(
        routes=made.routes(), lifespan=made.alive, exception_handlers={Exception: made.broken}
    )
    return Guard(app, site.settings.page_hosts)


class App:
    """Makes an endpoint of each page, act and part.

    Args:
        site: what they share.
        pages: the views.
    """

    def __init__(self, site: Site, pages: tuple[Page, ...]) -> None:
        """Remember them."""
        self._site = site
        self._pages = pages
        self._assets = answers.asset_names()

    def routes(self) -> list[Route]:
        """Return all routes: those that anybody may ask, then those of the pages."""
        found = [
            Route("/assets/{folder}/{name}", self._asset),
            *health.routes(self._site, self._guarded),
            *signing.routes(self._site),
        ]
        for page in self._pages:
            found.append(Route(page.path, self._guarded(self._shown(page))))
            found += [Route(one.path, self._guarded(self._part(one))) for one in page.parts]
            found += [Route(act.path, self._acted(act), methods=["POST"]) for act in page.acts]
        return found

    @asynccontextmanager
    async def alive(self, _: Starlette) -> AsyncIterator[None]:
        """Look every few seconds while the server lives, so that there is a past to show."""
        looking = asyncio.create_task(self._remember())
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    async def broken(self, request: Request, _: Exception) -> Response:
        """Return the page of an error that is ours: it quotes nothing, and the log has it all."""
        said = "an error of memorybus; the log of the page's process says more"
        return self._told(request, None, said, 500)

    async def _remember(self) -> None:
        while True:
            self._site.past.note(await run_in_threadpool(self._site.looks.look))
            await asyncio.sleep(EVERY)

    async def _asset(self, request: Request) -> Response:
        name = f"{request.path_params['folder']}/{request.path_params['name']}"
        if name not in self._assets:
            return Response("no such file\n", 404)
        answer = FileResponse(answers.HERE / name)
        answer.headers["cache-control"] = "max-age=3600"
        return answer

    def _guarded(self, endpoint: Callable[[Asked], Awaitable[Response]]) -> Endpoint:
        """Return an endpoint that is asked only for who may look."""

        async def answer(request: Request) -> Response:
            who = await run_in_threadpool(self._site.access.person, request)
            if who is None and self._site.access.is_guarded:
                return self._stranger(request)
            try:
                return await endpoint(Asked(self._site, request, who))
            except MemoryBusError as error:
                return answers.failed(self._site, request, who, self._pages, error)

        return answer

    def _stranger(self, request: Request) -> Response:
        """Return what somebody gets of whom we do not know who it is."""
        wants_page = "text/html" in request.headers.get("accept", "")
        if self._site.access.by_token and wants_page:
            return RedirectResponse(f"/signin?next={quote(request.url.path)}", 303)
        return Response("sign in first\n", 401, {"www-authenticate": "Bearer"})

    def _shown(self, page: Page) -> Callable[[Asked], Awaitable[Response]]:
        async def show(asked: Asked) -> Response:
            if live.is_wanted(asked.request):
                return live.stream(asked, page)
            data = await run_in_threadpool(page.show, asked)
            flash = {"flash": self._site.access.said(asked.who)}
            return answers.whole(asked, self._pages, page, {**flash, **data})

        return show

    def _part(self, part: Part) -> Callable[[Asked], Awaitable[Response]]:
        async def answer(asked: Asked) -> Response:
            return await run_in_threadpool(part.answer, asked)

        return answer

    def _acted(self, act: Act) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            who = await run_in_threadpool(self._site.access.person, request)
            form = await forms.read(request)
            if form is None:
                return self._told(request, who, "the form is too large", 413)
            refused = acting.refused(self._site, request, who, form)
            if refused or who is None:
                return self._told(request, who, refused, 403)
            asked = Asked(self._site, request, who, form)
            try:
                done = await run_in_threadpool(acting.carried_out, act, asked, who)
            except MemoryBusError as error:
                return answers.failed(self._site, request, who, self._pages, error)
            return RedirectResponse(done.where, 303)

        return endpoint

    def _told(self, request: Request, who: Person | None, said: str, status: int) -> Response:
        return answers.told(self._site, request, who, self._pages, said, status)
