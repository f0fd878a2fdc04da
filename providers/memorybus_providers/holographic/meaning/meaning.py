"""The search by meaning of one open instance: its embedder, its searches and its backfill."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout
from memorybus import private
from memorybus.clock import Clock
from memorybus.errors import Transient

from memorybus_providers.base import ProviderConfig, RecallScope
from memorybus_providers.embedding.embedder import Vector
from memorybus_providers.embedding.filled import FilledMeaning
from memorybus_providers.embedding.options import MeaningOptions
from memorybus_providers.embedding.vectors import Model
from memorybus_providers.finding.meaning_comparison import MeaningComparison, NoComparison
from memorybus_providers.finding.search import FactSearch
from memorybus_providers.holographic import schema
from memorybus_providers.holographic.finding.source import SqliteFacts
from memorybus_providers.holographic.meaning.tables import SqliteVectorTables
from memorybus_providers.holographic.meaning.vector_index import VectorIndex
from memorybus_providers.holographic.rows import rows_of

LOCK: Final = "meaning.lock"


class SqliteMeaning(FilledMeaning):
    """What an instance with an embedder has in addition to its store.

    Args:
        config: the configuration of the instance.
        options: its options, which name an embedder.
    """

    def __init__(self, path: Path, config: ProviderConfig, options: MeaningOptions) -> None:
        super().__init__(lambda: _open_exclusively(path, config.clock), config, options)

    def make_search(self, db: sqlite3.Connection) -> FactSearch:
        """Return a search by words and meaning in an open database."""
        tables, index = SqliteVectorTables(db), VectorIndex(db)

        def begin_comparison(text: str, scope: RecallScope) -> Callable[[], MeaningComparison]:
            model = tables.model()
            wait = self.ask(text, model)
            return lambda: _compare(db, index, scope, wait(), model)

        return FactSearch(SqliteFacts(db), begin_comparison)


def _compare(
    db: sqlite3.Connection,
    index: VectorIndex,
    scope: RecallScope,
    vector: Vector | None,
    model: Model | None,
) -> MeaningComparison:
    if vector is None or model is None:
        return NoComparison()
    return index.compare(rows_of(db, scope), vector, model)


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
