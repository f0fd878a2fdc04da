"""What holds for every request: the name it was sent to, and what a browser may do with answers."""

import ipaddress
from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""No inline script, no inline style, nothing of another host."""

_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # without any, a browser names no origin of a form
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """Refuses requests for names that are not ours, and adds headers to all answers.

    A page of a stranger whose name leads to this address (DNS rebinding) would else be read as
    ours. An address is no name and cannot be led elsewhere.

    Args:
        app: what answers.
        names: names by which the page is reached, beside ``localhost``.
    """

    def __init__(self, app: ASGIApp, names: Sequence[str] = ()) -> None:
        """Remember the names."""
        self._app = app
        self._names = {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
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
        if is_ours(host, self._names):
            await self._app(scope, receive, guarded)
        else:
            said = "this name is not one of the page's: add it to the setting page_hosts\n"
            await PlainTextResponse(said, 421)(scope, receive, guarded)


def is_ours(host: str, names: set[str]) -> bool:
    """Say whether a Host header has an address, or one of these names; pure."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name.lower() in names
    return True


def is_loopback(host: str) -> bool:
    """Say whether only this machine reaches an address; pure."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
