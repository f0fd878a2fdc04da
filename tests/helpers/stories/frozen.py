"""What commands print with ``--json``, frozen in files without what differs from run to run."""

import json
import re
import socket
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

FILES = Path(__file__).parents[2] / "golden" / "json"
"""A file for each command, with what it prints for each of its command lines."""

_LARGEST_COUNT = 99
"""Larger numbers are sizes and times, which differ."""

_TEXTS = (
    (re.compile(r"\w[\w.]*@" + re.escape(socket.gethostname())), "<operator>"),
    (re.compile(rf"(?<!\w){re.escape(socket.gethostname())}(-\d+-[0-9a-f]+)?(?!\w)"), "<host>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b[0-9a-f]{12,64}\b"), "<id>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?"), "<time>"),
    (re.compile(r"(redis|http)s?://[^\s,;\"')]+"), "<url>"),
    (re.compile(r"(?<![\w<])(/[\w.@~-]+)+/?"), "<path>"),
    (re.compile(r"\bt[0-9a-f]{12}\b"), "<namespace>"),
    (re.compile(r"\d+([.,]\d+)*"), "<n>"),
)
"""Texts that differ from run to run, and what stands for them."""

_MEASURED = frozenset(
    (
        "backlog",
        "bytes",
        "durability",
        "entries",
        "eta",
        "gone",
        "limit",
        "ms",
        "n",
        "oldest_unsealed_at",
        "page_token",
        "partition",
        "parts",
        "paused_ms",
        "pid",
        "product",
        "rate",
        "raw",
        "sealed",
        "seconds_left",
        "segments",
        "sound",
        "spans",
        "token",
        "types",
        "unsealed",
        "version",
        "waited_ms",
        "work",
    )
)
"""Fields whose values depend on the machine, on the time, or on where `doctor` left its event."""

_OF_THE_COMMAND: Mapping[str, frozenset[str]] = {
    "archive export": frozenset(("events",)),
    "archive import": frozenset(("events",)),
    "archive ls": frozenset(("segments",)),
    "check": frozenset(("state", "code", "line", "findings")),
    "config reference": frozenset(("name", "default", "unit", "meaning")),
    "config show": frozenset(("name", "value", "unit", "origin", "meaning")),
    "diff": frozenset(("session",)),
    "doctor": frozenset(("name", "ok", "found", "fix")),
    "hermes status": frozenset(("ok", "found", "fix")),
    "insights": frozenset(("activity", "hours", "longest", "recall")),
    "recall": frozenset(("session", "waited_ms")),
    "schema": frozenset(("$defs",)),
    "status": frozenset(("disk", "used", "limit_from", "lanes", "lanes_owned")),
}
"""Fields of single commands whose values depend on the machine, too, or have tests of their own."""


def path_of(command: str) -> Path:
    """Return the file of a command."""
    return FILES / f"{command.replace(' ', '-')}.json"


def write_frozen(command: str, printed: Sequence[Any]) -> None:
    """Freeze what a command prints."""
    FILES.mkdir(exist_ok=True)
    path_of(command).write_text(_text_of(printed))


def differences(command: str, printed: Sequence[Any]) -> list[str]:
    """Return how a command's output differs from what is frozen, as lines of a diff."""
    before, now = path_of(command).read_text(), _text_of(printed)
    return list(unified_diff(before.splitlines(), now.splitlines(), command, "now", n=2))


def _text_of(printed: Sequence[Any]) -> str:
    return json.dumps(printed, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def freeze(command: str, words: Sequence[str], printed: Any) -> Any:
    """Return a command line and what it printed, without what differs from run to run."""
    varying = _MEASURED | _OF_THE_COMMAND.get(command, frozenset())
    line = _masked_text(" ".join(words))
    return {"line": line, "prints": [_masked(value, varying) for value in printed]}


def _masked(value: Any, varying: frozenset[str]) -> Any:
    if isinstance(value, Mapping):
        return {
            _masked_text(name): "<…>" if name in varying else _masked(each, varying)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return _distinct([_masked(each, varying) for each in value])
    if isinstance(value, str):
        return _masked_text(value)
    if isinstance(value, float) or (not isinstance(value, bool) and _is_large(value)):
        return "<number>"
    return value


def _is_large(value: Any) -> bool:
    return isinstance(value, int) and value > _LARGEST_COUNT


def _distinct(values: Sequence[Any]) -> list[Any]:
    """Return values in one order, each once: events of one millisecond have no order."""
    return [
        json.loads(text) for text in sorted({json.dumps(value, sort_keys=True) for value in values})
    ]


def _masked_text(text: str) -> str:
    """Return a text with marks for what differs; memories of one time have no order in a block."""
    for pattern, place in _TEXTS:
        text = pattern.sub(place, text)
    return "\n".join(sorted(text.split("\n")))
