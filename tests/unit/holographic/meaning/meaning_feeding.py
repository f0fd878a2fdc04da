"""Providers with an embedder, and how far they have come."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helpers.processes.waiting import wait_until
from helpers.services.embedding_server import EmbeddingServer
from memorybus_providers.holographic import HolographicProvider
from unit.holographic.holographic_feeding import opened

MODEL = "concepts"
PATIENT = 20.0
"""Seconds for the vector of a question, where a test is not about the time."""


@contextmanager
def embedding(
    home: Path, server: EmbeddingServer, model: str = MODEL, **options: object
) -> Iterator[HolographicProvider]:
    """Open a provider whose embedder is a server."""
    given = {"embedder_wait": PATIENT, **options}
    with opened(home, embedder=server.address, embedder_model=model, **given) as provider:
        yield provider


def vectors(provider: HolographicProvider) -> tuple[int, int]:
    """Return how many facts have no vector, and how many vectors there are."""
    db = provider.opened.db
    if not db.execute("select 1 from sqlite_master where name = 'meaning_missing'").fetchone():
        return -1, 0
    missing, kept = db.execute(
        "select (select count(*) from meaning_missing), (select count(*) from meaning_vectors)"
    ).fetchone()
    return int(missing), int(kept)


def await_filled(provider: HolographicProvider, facts: int) -> None:
    """Wait until so many facts have vectors, and no other lacks one."""
    wait_until(
        lambda: vectors(provider) == (0, facts) and not provider.report(), "all facts have vectors"
    )
