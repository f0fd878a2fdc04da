"""Reports to the process that started this one: one JSON line at a time, on stdout."""

import contextlib
import os
import sys
from typing import Any

import msgspec


def print_json_line(line: dict[str, Any]) -> None:
    """Print one JSON line on stdout; it is no error if the reader has gone."""
    with contextlib.suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), msgspec.json.encode(line) + b"\n")
