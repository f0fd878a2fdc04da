"""A receiver for the webhook provider: checks signatures, keeps events, answers as it is told."""

import hmac
import json
from base64 import b64encode
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from helpers.services import fake_http

KEY = "correct horse battery"


class WebhookReceiver(fake_http.FakeServer):
    """What it took.

    Attributes:
        requests: every genuine request, in order: its event.
        kept: the events by id.
        answers: status by the word that an event contains; 204 for others.
        forged: how many requests had a wrong signature.
        location: where an answer of 302 leads.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.requests: list[dict[str, Any]] = []
        self.kept: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, int] = {}
        self.forged = 0
        self.location = ""

    def options(self, directory: Path) -> dict[str, Any]:
        """Return the options of a provider that sends here."""
        file = directory / "hook.key"
        file.touch(mode=0o600)
        file.write_text(KEY)
        return {"base_url": self.url, "api_key_file": str(file), "allow_private": True}


class _Handler(fake_http.FakeHandler):
    server: WebhookReceiver

    def serve(self, method: str) -> None:
        """Take an event, or refuse it."""
        body, head = self.body(), self.headers
        signed = f"{head['webhook-id']}.{head['webhook-timestamp']}.".encode() + body
        made = b64encode(hmac.digest(KEY.encode(), signed, "sha256")).decode()
        event = json.loads(body) if body else {}
        if head["webhook-signature"] != f"v1,{made}" or head["Idempotency-Key"] != event["id"]:
            self.server.forged += 1
            self.tell(401, {})
            return
        words = [word for word in self.server.answers if word in body.decode()]
        status = self.server.answers[words[0]] if words else 204
        self.server.requests.append(event)
        if status == 204:
            self.server.kept[event["id"]] = event
        self.send_response(status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.send_header("Content-Length", "0")
        self.end_headers()


def webhook_receiver() -> AbstractContextManager[WebhookReceiver]:
    """Receive while the block runs."""
    return fake_http.serving(WebhookReceiver())
