"""Lines of Claude Code's and Codex's transcripts, as these programs write them."""

import json
from itertools import count
from typing import Any


def claude_line(kind: str, content: Any, number: int, **fields: Any) -> dict[str, Any]:
    """Return a line of Claude Code; its number gives it an id and a time, which is to come."""
    message = {"role": kind, "content": content}
    if kind == "assistant":
        message["model"] = "claude-sonnet-5"
    stamp = f"2099-01-01T10:{number // 60:02}:{number % 60:02}.000Z"
    return {
        "type": kind,
        "uuid": f"u-{number}",
        "parentUuid": f"u-{number - 1}" if number else None,
        "sessionId": "s-1",
        "timestamp": stamp,
        "isSidechain": False,
        "message": message,
    } | fields


class Script:
    """A transcript that grows line by line.

    Attributes:
        lines: its lines.
    """

    def __init__(self, first: int = 0) -> None:
        self.lines: list[dict[str, Any]] = []
        self._numbers = count(first)

    def add(self, kind: str, content: Any, **fields: Any) -> "Script":
        """Add a line."""
        self.lines.append(claude_line(kind, content, next(self._numbers), **fields))
        return self

    def turn(self, prompt: str, answer: str, **fields: Any) -> "Script":
        """Add a prompt and its answer."""
        return self.add("user", prompt, **fields).add(
            "assistant", [{"type": "text", "text": answer}], **fields
        )

    def tool(self, name: str, given: dict[str, Any], result: str, **fields: Any) -> "Script":
        """Add a call of a tool and its result; `fields` belong to the result's line."""
        call = f"toolu_{len(self.lines)}"
        use = {"type": "tool_use", "id": call, "name": name, "input": given}
        answer = {"type": "tool_result", "tool_use_id": call, "content": result}
        return self.add("assistant", [use]).add("user", [answer], **fields)

    @property
    def text(self) -> str:
        """The lines as they stand in the file."""
        return as_lines(*self.lines)


def as_lines(*values: Any) -> str:
    """Return values as lines of JSON; a text stands for a line as it is."""
    return "".join(f"{v if isinstance(v, str) else json.dumps(v)}\n" for v in values)


def codex_lines(thread: str, *turns: tuple[str, str]) -> str:
    """Return a rollout of Codex."""
    meta = {"id": thread, "timestamp": "2099-01-01T10:00:00.000Z", "cwd": "/w"}
    lines: list[Any] = [{"timestamp": meta["timestamp"], "type": "session_meta", "payload": meta}]
    for number, (prompt, answer) in enumerate(turns, 1):
        for second, (role, kind, text) in enumerate(
            (("user", "input_text", prompt), ("assistant", "output_text", answer))
        ):
            item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
            stamp = f"2099-01-01T10:{number:02}:{second:02}.000Z"
            lines.append({"timestamp": stamp, "type": "response_item", "payload": item})
    return as_lines(*lines)
