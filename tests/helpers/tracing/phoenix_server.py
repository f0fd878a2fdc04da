"""The real Phoenix server, which takes traces by OTLP over HTTP and gRPC, on SQLite."""

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from helpers.processes.waiting import wait_until
from helpers.redis.clusters import free_ports
from helpers.services.environments import environment

NAME = "phoenix-20.26.1"
_START_SECONDS = 120.0
"""Seconds for a start, which migrates an empty database."""


class PhoenixServer:
    """Where it listens.

    Attributes:
        url: its address.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    def spans(self) -> list[dict[str, Any]]:
        """Return the spans that it has of everybody."""
        return list(self._got("/v1/projects/default/spans?limit=1000")["data"])

    def answers(self) -> bool:
        try:
            return bool(self._got("/v1/projects"))
        except (urllib.error.URLError, OSError):
            return False

    def _got(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=5) as answer:
            found: dict[str, Any] = json.load(answer)
            return found


@contextmanager
def phoenix_server(home: Path) -> Iterator[PhoenixServer]:
    """Run one in a directory until the block ends."""
    program = environment(NAME) / "bin" / "phoenix"
    port, grpc = free_ports(2)
    told = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PHOENIX_WORKING_DIR": str(home),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(grpc),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    server = PhoenixServer(f"http://127.0.0.1:{port}")
    with (home / "log").open("ab") as log:
        process = subprocess.Popen([program, "serve"], env=told, stdout=log, stderr=log)
        try:
            wait_until(lambda: _up(server, process, home), "Phoenix answers", _START_SECONDS)
            yield server
        finally:
            process.kill()
            process.wait()


def _up(server: PhoenixServer, process: "subprocess.Popen[bytes]", home: Path) -> bool:
    assert process.poll() is None, (home / "log").read_text()[-2000:]
    return server.answers()
