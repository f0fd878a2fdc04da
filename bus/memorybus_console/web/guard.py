"""Checks the host name of every request, and adds headers that restrict browsers."""

import ipaddress
from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""It allows no inline script, no inline style, and nothing from another host."""

_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # without a referrer, browsers hide a form's origin
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """Refuses requests for host names that are not ours, and adds headers to all responses.

    Otherwise another site whose name is made to resolve to this address (DNS rebinding) could read
    our page as its own. Requests for an IP address are allowed: no DNS entry can change it.

    Args:
        names: host names of the page, in addition to ``localhost``.
    """

    def __init__(self, app: ASGIApp, names: Sequence[str] = ()) -> None:
        self._app = app
        self._names = {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        host = Headers(scope=scope).get("host", "")
        if is_own_host(host, self._names):
            await self._app(scope, receive, guarded)
        else:
            text = "the page does not have this host name: add it to the setting page_hosts\n"
            await PlainTextResponse(text, 421)(scope, receive, guarded)


def is_own_host(host: str, names: set[str]) -> bool:
    """Return whether a Host header has an IP address, or one of these names; pure."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name.lower() in names
    return True
