"""A scripted model behind the OpenAI chat protocol, on loopback, that remembers what it was sent.

What it answers depends on the conversation alone: the words of the last user message choose a
script, and how often the assistant has answered since then chooses the step. So two sessions, a
retry and a killed agent get the answers that belong to them.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import msgspec

Answer = str | dict[str, Any]
"""Plain text, or an assistant message with tool calls (`calls`)."""


class Request(msgspec.Struct, frozen=True):
    """One request as it came over the wire."""

    messages: list[dict[str, Any]]
    tools: list[str]
    descriptions: dict[str, str]

    @property
    def system(self) -> str:
        """The system prompt."""
        return "\n".join(text_of(m) for m in self.messages if m["role"] == "system")

    @property
    def users(self) -> list[str]:
        """What was sent as the user's words, fences included, oldest first."""
        return [text_of(m) for m in self.messages if m["role"] == "user"]

    @property
    def results(self) -> list[str]:
        """What the tools answered, oldest first."""
        return [text_of(m) for m in self.messages if m["role"] == "tool"]


def text_of(message: dict[str, Any]) -> str:
    """Return a message's text, of parts too."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content)


def calls(*wanted: tuple[str, dict[str, Any]], name: str = "call") -> dict[str, Any]:
    """Return an assistant message that calls tools; ids begin with `name` and the place."""
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"{name}_{index}",
                "type": "function",
                "function": {"name": tool, "arguments": json.dumps(arguments)},
            }
            for index, (tool, arguments) in enumerate(wanted)
        ],
    }


def keeps(content: str, store: str = "memory", name: str = "call") -> dict[str, Any]:
    """Return an assistant message that writes an entry to one of the agent's two stores."""
    arguments = {"action": "add", "target": store, "content": content}
    return calls(("memory", arguments), name=name)


class Model:
    """The scripted model; ``with Model() as model`` serves it at ``model.url``.

    Attributes:
        requests: all that came for a chat (with tools), oldest first.
        others: those without tools: titles, summaries.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.others: list[Request] = []
        self._scripts: dict[str, Sequence[Answer]] = {}
        self._gates: dict[str, threading.Event] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        poll = {"poll_interval": 0.02}
        threading.Thread(target=self._server.serve_forever, kwargs=poll, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for gate in self._gates.values():
            gate.set()
        self._server.shutdown()
        self._server.server_close()

    def script(self, words: str, *answers: Answer) -> None:
        """When the last user message holds `words`, answer step by step, then ``done``."""
        self._scripts[words] = answers

    def hold(self, words: str) -> threading.Event:
        """Answer messages that hold `words` only when the returned event is set."""
        return self._gates.setdefault(words, threading.Event())

    def asked(self, words: str) -> Request:
        """Return the first request whose last user message holds `words`."""
        return next(r for r in list(self.requests) if r.users and words in r.users[-1])

    def answer(self, body: dict[str, Any]) -> Answer:
        """Note a request and return the answer to it."""
        tools = [tool["function"] for tool in body.get("tools") or ()]
        described = {tool["name"]: tool.get("description", "") for tool in tools}
        request = Request(body["messages"], [tool["name"] for tool in tools], described)
        if not tools:
            self.others.append(request)
            return "A short summary of what was said."
        self.requests.append(request)
        return self._scripted(request)

    def _scripted(self, request: Request) -> Answer:
        last = max((i for i, m in enumerate(request.messages) if m["role"] == "user"), default=0)
        spoken = text_of(request.messages[last])
        for words, gate in list(self._gates.items()):
            if words in spoken:
                gate.wait(60)
        step = sum(m["role"] == "assistant" for m in request.messages[last:])
        own = spoken.split("\n\n<memory-context>")[0]
        for words, answers in self._scripts.items():
            if words in own:
                return self._stamped(answers[step]) if step < len(answers) else "done"
        return f"I have heard: {own}"

    def _stamped(self, answer: Answer) -> Answer:
        """Give calls ids that no other request has: Hermes drops a result whose id it has seen."""
        if isinstance(answer, str):
            return answer
        stamp = len(self.requests)
        own = [{**call, "id": f"{call['id']}_{stamp}"} for call in answer["tool_calls"]]
        return {**answer, "tool_calls": own}


def _handler(model: Model) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(json.dumps({"object": "list", "data": [{"id": "scripted"}]}).encode())

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if "messages" not in body:
                self.send_error(404)
                return
            message = _message(model.answer(body))
            if body.get("stream"):
                self._send(b"".join(_stream(message)), "text/event-stream")
            else:
                self._send(json.dumps(_completion(message)).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def _send(self, body: bytes, kind: str = "application/json") -> None:
            try:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except ConnectionError:
                self.close_connection = True  # the agent was killed

    return Handler


_USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def _message(answer: Answer) -> dict[str, Any]:
    return {"role": "assistant", "content": answer} if isinstance(answer, str) else answer


def _why(message: dict[str, Any]) -> str:
    return "tool_calls" if message.get("tool_calls") else "stop"


def _completion(message: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": _why(message)}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [choice],
        "usage": _USAGE,
    }


def _stream(message: dict[str, Any]) -> Iterator[bytes]:
    delta = dict(message)
    for index, call in enumerate(delta.get("tool_calls") or ()):
        call["index"] = index
    yield _chunk([{"index": 0, "delta": delta, "finish_reason": None}])
    yield _chunk([{"index": 0, "delta": {}, "finish_reason": _why(message)}])
    yield _chunk([], usage=_USAGE)
    yield b"data: [DONE]\n\n"


def _chunk(choices: list[dict[str, Any]], **more: Any) -> bytes:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    return b"data: " + json.dumps(head | {"choices": choices} | more).encode() + b"\n\n"
