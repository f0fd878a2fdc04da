"""The search by meaning of one open instance: its embedder, its searches and its filler."""

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
from memorybus_providers.embedding.filled import FilledMeaning
from memorybus_providers.embedding.options import MeaningOptions
from memorybus_providers.finding.search import FactSearch
from memorybus_providers.holographic import schema
from memorybus_providers.holographic.finding.source import SqliteFacts
from memorybus_providers.holographic.meaning.tables import SqliteVectorTables
from memorybus_providers.holographic.meaning.vector_search import SqliteVectorSearch

LOCK: Final = "meaning.lock"


class SqliteMeaning(FilledMeaning):
    """What an instance with an embedder has in addition to its store.

    Args:
        path: the database.
        config: the configuration of the instance.
        options: its options, which name an embedder.
    """

    def __init__(self, path: Path, config: ProviderConfig, options: MeaningOptions) -> None:
        """Choose the embedder; see `FilledMeaning`."""
        super().__init__(lambda: _open_exclusively(path, config.clock), config, options)
        self._clock = config.clock
        self._vector_searches: list[SqliteVectorSearch] = []

    def make_search(self, db: sqlite3.Connection) -> FactSearch:
        """Return a search by words and meaning in an open database."""
        vector_search = SqliteVectorSearch(
            db, self._embedder, self._model, self._options, self._clock
        )
        self._vector_searches.append(vector_search)
        return FactSearch(SqliteFacts(db), vector_search.begin_comparison)

    def _end_searches(self) -> None:
        for vector_search in self._vector_searches:
            vector_search.close()


@contextmanager
def _open_exclusively(path: Path, clock: Clock) -> Iterator[SqliteVectorTables | None]:
    """Lock and open the vectors of a file; yield None if another process has the lock."""
    lock = FileLock(path.with_name(LOCK), mode=private.FILE)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield None
        return
    try:
        with closing(schema.connect(path, clock)) as db:
            yield SqliteVectorTables(db)
    except sqlite3.Error as error:
        raise Transient(f"{path}: {error}") from error
    finally:
        lock.release()
