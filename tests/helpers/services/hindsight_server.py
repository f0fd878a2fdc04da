"""The real Hindsight server, without a model, on a real PostgreSQL and a stub that embeds."""

import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.processes.waiting import wait_until
from helpers.redis.clusters import free_ports
from helpers.services.embedding_server import embedding_server
from helpers.services.environments import environment
from helpers.services.postgres_server import PostgresServer

NAME = "hindsight-1.1.0"
_SIZE = "384"
_START_SECONDS = 120.0
"""Seconds for a start, which migrates an empty database."""


class HindsightServer:
    """Where it listens, and the database behind it.

    Attributes:
        url: its address.
        database: the connection string of its database.
    """

    def __init__(self, url: str, database: str) -> None:
        self.url, self.database = url, database


@pytest.fixture(scope="session")
def hindsight(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HindsightServer]:
    """One server for all tests of this process: each has banks of its own."""
    programs = environment(NAME) / "bin"
    program = (programs / "python", programs / "hindsight-api")  # it may have been moved
    home = tmp_path_factory.mktemp("hindsight")
    database = postgres_server.database()
    (port,) = free_ports(1)
    with embedding_server() as embedder, (home / "log").open("ab") as log:
        told = _environment(f"postgresql://postgres@/{database}?host={postgres_server.directory}",
                            embedder.address, port, home)  # fmt: skip
        process = subprocess.Popen(program, env=told, stdout=log, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until(
                lambda: _healthy(process, url, home), f"Hindsight answers on {url}", _START_SECONDS
            )
            yield HindsightServer(url, postgres_server.url(database))
        finally:
            process.kill()
            process.wait()


def _environment(database: str, embedder: str, port: int, home: Path) -> dict[str, str]:
    settings = {
        "DATABASE_URL": database,
        "LLM_PROVIDER": "none",
        "LLM_TRACE_ENABLED": "false",
        "RERANKER_PROVIDER": "rrf",
        "EMBEDDINGS_PROVIDER": "openai",
        "EMBEDDINGS_OPENAI_BASE_URL": embedder,
        "EMBEDDINGS_OPENAI_API_KEY": "none",
        "EMBEDDINGS_OPENAI_MODEL": "stub",
        "EMBEDDINGS_OPENAI_DIMENSIONS": _SIZE,
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "WORKER_ID": "tests",
    }
    told = {f"HINDSIGHT_API_{name}": value for name, value in settings.items()}
    return {"PATH": os.environ["PATH"], "HOME": str(home), **told}


def _healthy(process: "subprocess.Popen[bytes]", url: str, home: Path) -> bool:
    assert process.poll() is None, (home / "log").read_text()[-2000:]
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
