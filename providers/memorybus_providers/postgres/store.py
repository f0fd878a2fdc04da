"""The connections of an open instance, and the transaction of a lane."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from memorybus.errors import ProviderError
from memorybus.events import Scope

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
from memorybus_providers.postgres import digest, ledger, memory_rows
from memorybus_providers.postgres.erasure import (
    PostgresErasure,
    curated_memories,
    owners,
    stored_memories,
)
from memorybus_providers.postgres.finding.source import PostgresFacts
from memorybus_providers.postgres.ledger import PostgresLedger
from memorybus_providers.postgres.link import STATEMENT_SECONDS, Connection, Link, confine
from memorybus_providers.postgres.options import Where
from memorybus_providers.postgres.writing.corrections import PostgresCorrections
from memorybus_providers.postgres.writing.curations import USED, PostgresCurations
from memorybus_providers.postgres.writing.derivations import PostgresDerivations
from memorybus_providers.postgres.writing.judgements import PostgresJudgements
from memorybus_providers.postgres.writing.notes import Notes
from memorybus_providers.postgres.writing.places import Places
from memorybus_providers.postgres.writing.results import PostgresResults
from memorybus_providers.postgres.writing.utterances import PostgresUtterances

_HINT_SECONDS = 0.1
_LONG_SECONDS = 600.0
_RETRIEVED = """
update facts set retrieval_count = retrieval_count + 1
where id in (select id from facts where id = any(%s) order by id for update skip locked)
"""


Searching = Callable[[Connection, PostgresFacts], FactSearch]


def by_words(db: Connection, source: PostgresFacts) -> FactSearch:
    """Return a search by words alone."""
    return FactSearch(source)


class OpenTransaction:
    """The parts that write in an open transaction."""

    def __init__(self, db: Connection, places: Places) -> None:
        self.utterances = PostgresUtterances(db, places)
        self.notes = Notes(db, places)
        self.corrections = PostgresCorrections(db, places)
        self.curations = PostgresCurations(db, places)
        self.derivations = PostgresDerivations(db, places)
        self.judgements = PostgresJudgements(db, places)
        self.results = PostgresResults(db)
        self.db = db

    @property
    def source(self) -> PostgresFacts:
        """Reads what was written. Each is a new one, since the transaction may have made scopes."""
        return PostgresFacts(self.db)


class PostgresStore:
    """Owns two connections: one writes for lanes, and the other reads. For one thread."""

    def __init__(self, where: Where, searching: Searching = by_words) -> None:
        self._searching = searching
        self._where = where
        self._link = Link(where)
        self._readers = Link(where)
        self._places = Places()
        self._ledger = PostgresLedger()
        self._open: OpenTransaction | None = None

    def close(self) -> None:
        """Close the connections; an open transaction is rolled back."""
        self._link.close()
        self._readers.close()

    def progress(self, lane: str) -> Progress | None:
        """Return a lane's committed progress."""
        with self._readers.transaction(STATEMENT_SECONDS, reading=True) as db:
            return ledger.progress(db, lane)

    @contextmanager
    def lane(self, fence: Fence) -> Iterator[Transaction]:
        """Open the transaction of a lane's owner."""
        with self._transaction() as parts:
            yield self._ledger.open(parts.db, fence)

    @contextmanager
    def writing(self, *, in_order: bool = False) -> Iterator[OpenTransaction]:
        """Join the open transaction, or open one and commit it."""
        if self._open is None:
            with self._transaction() as parts:
                yield parts
            return
        if in_order:
            self._open.utterances.flush()
        yield self._open

    @contextmanager
    def reading(self, scope: RecallScope, seconds: float) -> Iterator[FactSearch]:
        """Read from one snapshot; inside a lane's transaction also see what that has written."""
        if self._open is not None:
            self._open.utterances.flush()
            yield self._searching(self._open.db, self._open.source)
            return
        with self._readers.transaction(seconds, reading=True) as db:
            source = PostgresFacts(db)
            if self._where.reader:
                confine(db, self._where.reader, source.scopes(scope))
            yield self._searching(db, source)

    def count_retrieved(self, rows: Sequence[int], now: int) -> None:
        """Count one retrieval of each fact that no other transaction has locked."""
        with self._hinting() as db:
            db.execute(_RETRIEVED, (list(rows),))
            db.execute(USED, (now, list(rows)))

    def note_used(self, rows: Sequence[int], now: int) -> None:
        """Note that facts were used, unless another transaction has locked what it writes."""
        with self._hinting() as db:
            db.execute(USED, (now, list(rows)))

    @contextmanager
    def _hinting(self) -> Iterator[Connection]:
        """Join the open transaction, or open a short one whose failure does not matter."""
        if self._open is not None:
            yield self._open.db
            return
        with suppress(ProviderError), self._readers.transaction(_HINT_SECONDS) as db:
            yield db

    def keep_rows(self, scope: Scope) -> None:
        """Refresh the rows of a scope's two stores in ``memory_rows``."""
        with self.writing(in_order=True) as parts:
            memory_rows.refresh(parts.db, scope)

    def digest(self, after: str) -> Iterator[tuple[str, str]]:
        """Return the pairs of `postgres.digest`, from one snapshot."""
        with self._readers.transaction(_LONG_SECONDS, reading=True) as db:
            yield from digest.pairs(db, after)

    def erase(self, scope: RecallScope) -> Residue:
        """Erase all that is stored of a scope; see `PostgresErasure`."""
        return PostgresErasure(self._readers, self._where.schema).erase(scope)

    def stored(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield what `erase` would erase, from one snapshot."""
        with self._readers.transaction(_LONG_SECONDS, reading=True) as db:
            yield from stored_memories(db, scope)

    def curated(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield what was kept of a scope with its states, from one snapshot."""
        with self._readers.transaction(_LONG_SECONDS, reading=True) as db:
            yield from curated_memories(db, scope)

    def owners(self, after: tuple[str, str, str] | None) -> Iterator[MemoryOwner]:
        """Yield each scope with the number of its facts, from one snapshot."""
        with self._readers.transaction(_LONG_SECONDS, reading=True) as db:
            yield from owners(db, after)

    @contextmanager
    def _transaction(self) -> Iterator[OpenTransaction]:
        try:
            with self._link.transaction(STATEMENT_SECONDS) as db:
                self._places.begin(db)
                self._open = parts = OpenTransaction(db, self._places)
                yield parts
                parts.utterances.flush()
        except BaseException:
            self._places.forget()
            raise
        finally:
            self._open = None
