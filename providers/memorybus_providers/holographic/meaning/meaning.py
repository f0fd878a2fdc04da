"""Search by meaning of one open instance: its embedder, its searches, and what fills in vectors."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout
from memorybus import private
from memorybus.clock import Clock
from memorybus.errors import Transient

from memorybus_providers.base import ProviderConfig
from memorybus_providers.embedding.embedder import chosen
from memorybus_providers.embedding.filler import Filler, Filling
from memorybus_providers.embedding.options import MeaningOptions
from memorybus_providers.finding.search import FactSearch
from memorybus_providers.holographic import schema
from memorybus_providers.holographic.finding.source import SqliteFacts
from memorybus_providers.holographic.meaning.nearby import NearbyFacts
from memorybus_providers.holographic.meaning.tables import VectorTables

LOCK: Final = "meaning.lock"


class Meaning:
    """What an instance with an embedder has beside its store.

    Args:
        path: the database.
        config: the instance.
        options: its options, with an embedder.
    """

    def __init__(self, path: Path, config: ProviderConfig, options: MeaningOptions) -> None:
        """Choose the embedder; nothing is asked and no thread is started.

        Raises:
            ImportError: what the embedder needs is not installed.
            Unavailable: the variable that is to hold its key does not exist.
        """
        self._options = options
        self._clock = config.clock
        self._embedder = chosen(options)
        self._model = options.known_by(self._embedder.model)
        self._filler = Filler(
            Filling(
                opened=lambda: _alone(path, config.clock),
                clock=config.clock,
                embedder=self._embedder,
                model=self._model,
                prefix=options.embedder_text,
                batch=options.embedder_batch,
                rebuild=f"memorybus rebuild {config.stands_for or config.name}",
            )
        )
        self._nearby: list[NearbyFacts] = []

    @property
    def report(self) -> str:
        """What an operator should know of the vectors, in one line; "" for nothing."""
        return self._filler.report

    def searching(self, db: sqlite3.Connection) -> FactSearch:
        """Return a search by words and meaning over an open database."""
        nearby = NearbyFacts(db, self._embedder, self._model, self._options, self._clock)
        self._nearby.append(nearby)
        return FactSearch(SqliteFacts(db), nearby.look)

    def fill(self) -> None:
        """Fill in what is missing from now on, in a thread; and look now if that is done already.

        For an instance that has lanes: one that only answers writes nothing.
        """
        self._filler.start()
        self._filler.wake()

    def close(self) -> None:
        """End the threads, and release the embedder."""
        self._filler.stop()
        for nearby in self._nearby:
            nearby.close()
        self._embedder.close()


@contextmanager
def _alone(path: Path, clock: Clock) -> Iterator[VectorTables | None]:
    """Open the vectors of a file, unless another process fills them: who holds a lock."""
    lock = FileLock(path.with_name(LOCK), mode=private.FILE)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield None
        return
    try:
        with closing(schema.connect(path, clock)) as db:
            yield VectorTables(db)
    except sqlite3.Error as error:
        raise Transient(f"{path}: {error}") from error
    finally:
        lock.release()
