"""A real HTTP server that takes what people are told, and fails as it is told."""

from contextlib import AbstractContextManager
from typing import Any

from helpers.services.fake_http import serving
from helpers.services.faulty_http import FaultyHandler, FaultyServer

PATH = "/hook/a-secret-in-the-path"


class WebhookServer(FaultyServer):
    """What it took.

    Attributes:
        notices: the bodies that were posted to `PATH`, in order.
    """

    def __init__(self) -> None:
        """Have taken nothing."""
        super().__init__(_Handler)
        self.notices: list[dict[str, Any]] = []

    @property
    def hook(self) -> str:
        """The webhook's address."""
        return f"{self.url}{PATH}"

    def told(self, part: str) -> list[str]:
        """Return the codes of what was told in one of the lists, in order."""
        return [one["code"] for notice in self.notices for one in notice[part]]


class _Handler(FaultyHandler):
    server: WebhookServer

    def answer(self, method: str, body: Any) -> Any:
        """Take a notice."""
        self.server.notices.append(body)
        return {}


def webhook_server() -> AbstractContextManager[WebhookServer]:
    """Serve while the block runs."""
    return serving(WebhookServer())
