"""Tells programs whether the page is up, whether Redis answers, the bus's health and metrics."""

import threading
from collections.abc import Awaitable, Callable

import msgspec
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError, install_command
from memorybus.health.finding import Check
from memorybus.ids import new_id
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from memorybus_console.operations.doctor.instances import send_and_await
from memorybus_console.web.page import PageRequest, Site

Guarded = Callable[
    [Callable[[PageRequest], Awaitable[Response]]], Callable[[Request], Awaitable[Response]]
]

CANARY_CACHE_SECONDS = 30.0
"""Seconds for which one canary answers all requests, because each is an event in the log."""


def routes(site: Site, guarded: Guarded) -> list[Route]:
    """Return the routes; two of them say only yes or no, and anybody may request them."""
    canary = Canary(site.settings, site.clock)

    async def alive(_: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def ready(_: Request) -> Response:
        bus = await run_in_threadpool(site.bus_state.read)
        if bus.status is None:
            return PlainTextResponse("Redis does not answer\n", 503)
        return PlainTextResponse("ready\n")

    async def health(page_request: PageRequest) -> Response:
        return await run_in_threadpool(_health_response, page_request, canary)

    return [
        Route("/livez", alive),
        Route("/readyz", ready),
        Route("/healthz", guarded(health)),
        Route("/metrics", guarded(_metrics_endpoint(site.settings))),
    ]


class Canary:
    """Sends a canary at intervals, as `memorybus doctor` does; any thread may call it."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._until = float("-inf")
        self._check = Check(name="canary", ok=False, found="not sent yet")

    def check(self) -> Check:
        """Return the check of a canary that is not older than `CANARY_CACHE_SECONDS`."""
        with self._lock:
            if self._clock.monotonic() >= self._until:
                self._check = self._send()
                self._until = self._clock.monotonic() + CANARY_CACHE_SECONDS
            return self._check

    def _send(self) -> Check:
        try:
            return send_and_await(self._settings, self._clock, new_id())
        except MemoryBusError as error:
            fix = "run: memorybus doctor"
            return Check(name="canary", ok=False, found=str(error), fix=fix)


def _health_response(page_request: PageRequest, canary: Canary) -> Response:
    bus = page_request.bus_state()
    verdict = bus.verdict if page_request.who else bus.without_quotations().verdict
    answer = msgspec.to_builtins(verdict)
    well = verdict.state in ("OK", "WARNING")
    if page_request.query.get("deep") == "1" and page_request.who:  # each is an event in the log
        check = canary.check()
        answer["canary"] = msgspec.to_builtins(check)
        well = well and check.ok
    body = msgspec.json.encode(answer)
    return Response(body, 200 if well else 503, media_type="application/json")


def _metrics_endpoint(settings: Settings) -> Callable[[PageRequest], Awaitable[Response]]:
    """Return the metrics' endpoint, or one that says what to install for it."""
    try:
        from memorybus.health.metrics import registry
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
    except ImportError:

        async def missing(_: PageRequest) -> Response:
            text = f"metrics need prometheus-client: {install_command('metrics')}\n"
            return PlainTextResponse(text, 501)

        return missing
    collectors = registry(settings)

    async def metrics(_: PageRequest) -> Response:
        body = await run_in_threadpool(generate_latest, collectors)
        return Response(body, headers={"content-type": CONTENT_TYPE_LATEST})

    return metrics
