"""What a process says to the one that started it: one JSON line at a time, on stdout."""

import contextlib
import os
import sys
from typing import Any

import msgspec


def print_json_line(line: dict[str, Any]) -> None:
    """Print one JSON line on stdout; a reader that has gone is no reason to fail."""
    with contextlib.suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), msgspec.json.encode(line) + b"\n")
