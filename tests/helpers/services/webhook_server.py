"""A real HTTP server that takes notifications, and fails on request."""

from contextlib import AbstractContextManager
from typing import Any

from helpers.services.fake_http import serving
from helpers.services.faulty_http import FaultyHandler, FaultyServer

PATH = "/hook/a-secret-in-the-path"


class WebhookServer(FaultyServer):
    """What it took.

    Attributes:
        messages: the bodies that were posted to `PATH`, in order.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.messages: list[dict[str, Any]] = []

    @property
    def address(self) -> str:
        """Its address as Apprise wants it: a POST of JSON."""
        return f"{self.url}{PATH}".replace("http://", "json://")


class _Handler(FaultyHandler):
    server: WebhookServer

    def answer(self, method: str, body: Any) -> Any:
        self.server.messages.append(body)
        return {}


def webhook_server() -> AbstractContextManager[WebhookServer]:
    """Serve while the block runs."""
    return serving(WebhookServer())
