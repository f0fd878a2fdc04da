"""The open database with its transactions and errors, and the parts that work on it."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from memorybus.clock import Clock
from memorybus.errors import Transient

from memorybus_providers import ledger
from memorybus_providers.base import (
    Fence,
    MemoryOwner,
    Progress,
    RecallScope,
    Residue,
    StoredMemory,
    Transaction,
)
from memorybus_providers.finding.search import FactSearch
from memorybus_providers.holographic import digest, schema
from memorybus_providers.holographic.erasure import (
    SqliteErasure,
    curated_memories,
    owners,
    stored_memories,
)
from memorybus_providers.holographic.finding.source import SqliteFacts
from memorybus_providers.holographic.writing.corrections import SqliteCorrections
from memorybus_providers.holographic.writing.curations import SqliteCurations, note_used
from memorybus_providers.holographic.writing.derivations import SqliteDerivations
from memorybus_providers.holographic.writing.entries import KeptFacts
from memorybus_providers.holographic.writing.judgements import SqliteJudgements
from memorybus_providers.holographic.writing.results import SqliteResults
from memorybus_providers.holographic.writing.sessions import Sessions
from memorybus_providers.holographic.writing.utterances import SqliteUtterances

_RETRIEVED = """
update facts set retrieval_count = retrieval_count + 1
where id in (select value from json_each(?))
"""


def by_words(db: sqlite3.Connection) -> FactSearch:
    """Return a search by words alone."""
    return FactSearch(SqliteFacts(db))


class HolographicStore:
    """Owns the connection.

    Args:
        searching: makes the search in it.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        searching: Callable[[sqlite3.Connection], FactSearch] = by_words,
    ) -> None:
        """Open the database and create it if it is missing.

        Raises:
            Unavailable: the file is not a database, is damaged or of another release.
        """
        self.path = path
        self.db = schema.connect(path, clock)
        self._ledger = ledger.Ledger(self.db)
        self._version = 0
        self._places = Sessions(self.db)
        self.utterances = SqliteUtterances(self.db, self._places)
        self.notes = KeptFacts(self.db, self._places)
        self.corrections = SqliteCorrections(self.db, self._places)
        self.curations = SqliteCurations(self.db, self._places)
        self.derivations = SqliteDerivations(self.db, self._places)
        self.judgements = SqliteJudgements(self.db, self._places)
        self.results = SqliteResults(self.db)
        self._search = searching(self.db)
        self.source = self._search.source

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        self.db.close()

    def progress(self, lane: str) -> Progress | None:
        """Return a lane's committed progress."""
        with self.translating_errors():
            return ledger.progress(self.db, lane)

    def digest(self, after: str) -> Iterator[tuple[str, str]]:
        """Return the pairs of `holographic.digest`."""
        with self.translating_errors():
            yield from digest.pairs(self.db, after)

    def erase(self, scope: RecallScope) -> Residue:
        """Erase all that is stored of a scope; see `holographic.erasure`.

        Raises:
            Transient: another process locks the database for too long.
            Unavailable: the disk is full, or the file is damaged.
        """
        with self.translating_errors():
            return SqliteErasure(self.db, self.path, self._writing).erase(scope)

    def stored(self, scope: RecallScope) -> Iterator[StoredMemory]:
        with self.translating_errors():
            yield from stored_memories(self.db, scope)

    def curated(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield what was kept of a scope, with its states."""
        with self.translating_errors():
            yield from curated_memories(self.db, scope)

    def owners(self, after: tuple[str, str, str] | None) -> Iterator[MemoryOwner]:
        """Yield each scope with the number of its facts."""
        with self.translating_errors():
            yield from owners(self.db, after)

    @contextmanager
    def reading(self, scope: RecallScope, seconds: float) -> Iterator[FactSearch]:
        """Read without a lock; inside a lane's transaction also what that has just written."""
        with self.translating_errors():
            self.utterances.flush()
            yield self._search

    def count_retrieved(self, rows: Sequence[int], now: int) -> None:
        """Count one retrieval of each fact; nothing is counted while another process writes."""
        with suppress(Transient), self._writing(wait=False):
            self.db.execute(_RETRIEVED, (json.dumps(rows),))
            note_used(self.db, rows, now)

    def note_used(self, rows: Sequence[int], now: int) -> None:
        """Note that facts were used; nothing is noted while another process writes."""
        with suppress(Transient), self._writing(wait=False):
            note_used(self.db, rows, now)

    @contextmanager
    def lane(self, fence: Fence) -> Iterator[Transaction]:
        """Open the transaction of a lane's owner (see `ledger.Ledger.transaction`)."""
        with (
            self.translating_errors(),
            self._rolling_back_on_failure(),
            self._ledger.transaction(fence) as opened,
        ):
            self._forget_if_changed()
            yield opened
            self.utterances.flush()

    @contextmanager
    def writing(self, *, in_order: bool = False) -> Iterator["HolographicStore"]:
        """Join the open transaction, or open one and commit it.

        Args:
            in_order: write pending utterances first, so that rows keep the order of events.

        Raises:
            Transient: another process has locked the database.
        """
        with self._writing():
            if in_order:
                self.utterances.flush()
            yield self

    @contextmanager
    def _writing(self, *, wait: bool = True) -> Iterator[None]:
        with self.translating_errors():
            if self.db.in_transaction:
                yield
            else:
                self._begin(wait=wait)
                with self._rolling_back_on_failure():
                    self._forget_if_changed()
                    yield
                    self.utterances.flush()
                    self.db.execute("commit")

    @contextmanager
    def translating_errors(self) -> Iterator[None]:
        """Turn SQLite's errors into the provider's (see `memorybus_providers.errors`)."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise ledger.provider_error(error) from error
        except sqlite3.DatabaseError as error:
            # A subclass is about one statement; the class itself means that the file is damaged.
            if type(error) is sqlite3.DatabaseError:
                raise schema.damaged_error(self.path, error) from error
            raise

    @contextmanager
    def _rolling_back_on_failure(self) -> Iterator[None]:
        """Roll back after an error, and forget cached row numbers: their rows may be gone."""
        try:
            yield
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("rollback")
            self._places.forget()
            self.utterances.forget()
            raise

    def _forget_if_changed(self) -> None:
        """Forget cached row numbers if another connection has written: an erasure removes rows."""
        (version,) = self.db.execute("pragma data_version").fetchone()
        if version != self._version:
            self._version = version
            self._places.forget()
            self.utterances.forget()

    def _begin(self, *, wait: bool) -> None:
        seconds = schema.BUSY_SECONDS if wait else 0
        self.db.execute(f"pragma busy_timeout = {round(seconds * 1000)}")
        try:
            self.db.execute("begin immediate")
        finally:
            self.db.execute(f"pragma busy_timeout = {round(schema.BUSY_SECONDS * 1000)}")
