"""A stub of a chat model on loopback: it answers every request with the same text."""

import json
from contextlib import AbstractContextManager

from helpers.services.fake_http import FakeHandler, FakeServer, serving


class ChatServer(FakeServer):
    """Answers ``POST /v1/chat/completions``.

    Attributes:
        text: what it answers.
        status: the status with which it answers.
        asked: how often it was asked.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.text = ""
        self.status = 200
        self.asked = 0

    @property
    def address(self) -> str:
        """What clients are told."""
        return f"{self.url}/v1"


class _Handler(FakeHandler):
    server: ChatServer

    def do_POST(self) -> None:
        """Answer, whatever is asked."""
        model = json.loads(self.body())["model"]
        self.server.asked += 1
        message = {"role": "assistant", "content": self.server.text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        answer = {"id": "c", "object": "chat.completion", "created": 0, "choices": [choice]}
        self.tell(self.server.status, {**answer, "model": model})


def chat_server() -> AbstractContextManager[ChatServer]:
    """Serve while the block runs."""
    return serving(ChatServer())
