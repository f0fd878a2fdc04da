"""A stub of a chat model on loopback: it answers as its script says, slowly or not at all."""

import json
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from helpers.services.fake_http import FakeHandler, FakeServer, serving


class ChatServer(FakeServer):
    """Answers ``POST /v1/chat/completions``.

    Attributes:
        text: what it answers.
        script: makes the answer from a request's body; None for `text`.
        statuses: the statuses of the next requests; then it answers with `status`.
        status: the status with which it answers.
        headers: the headers of the last request.
        questions: the bodies of all requests.
        free: while it is not set, requests are read and not answered.
        usage: the tokens that it counts; "counted" for a quarter of the characters.
        drips: whether an answer comes byte by byte and never ends.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.text = ""
        self.script: Callable[[dict[str, Any]], str] | None = None
        self.statuses: list[int] = []
        self.status = 200
        self.headers: Mapping[str, str] = {}
        self.questions: list[dict[str, Any]] = []
        self.free = threading.Event()
        self.free.set()
        self.usage: dict[str, int] | str | None = "counted"
        self.drips = False

    @property
    def asked(self) -> int:
        """How often it was asked."""
        return len(self.questions)

    @property
    def address(self) -> str:
        """What clients are told."""
        return f"{self.url}/v1"

    def server_close(self) -> None:
        self.free.set()
        super().server_close()


class _Handler(FakeHandler):
    server: ChatServer

    def do_POST(self) -> None:
        server, body = self.server, json.loads(self.body())
        server.headers = self.headers
        server.questions.append(body)
        server.free.wait(60)
        if server.drips:
            self._drip()
            return
        text = server.script(body) if server.script else server.text
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        answer = {"id": "c", "object": "chat.completion", "created": 0, "choices": [choice]}
        status = server.statuses.pop(0) if server.statuses else server.status
        usage = {
            "prompt_tokens": sum(len(each["content"]) for each in body["messages"]) // 4,
            "completion_tokens": len(text) // 4,
        }
        repeated = {"error": {"message": f"no: {self.headers.get('Authorization')}"}}
        told = {**answer, "model": body["model"]}
        told["usage"] = usage if server.usage == "counted" else server.usage
        self.tell(status, told if status == 200 else repeated)

    def _drip(self) -> None:
        self.send_response(200)
        self.end_headers()
        while self.server.drips:
            try:
                self.wfile.write(b" ")
                self.wfile.flush()
            except OSError:  # the client has had enough
                return
            threading.Event().wait(0.02)


def chat_server() -> AbstractContextManager[ChatServer]:
    """Serve while the block runs."""
    return serving(ChatServer())
