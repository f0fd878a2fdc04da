"""The open database, its transactions and errors, and the parts that work on it."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memorybus.clock import Clock

from memorybus_providers import ledger
from memorybus_providers.base import Fence, Transaction
from memorybus_providers.holographic import schema
from memorybus_providers.holographic.finding.recall import FactSearch
from memorybus_providers.holographic.tools.calls import ReadingTools, WritingTools
from memorybus_providers.holographic.writing.corrections import Corrections
from memorybus_providers.holographic.writing.entries import KeptFacts
from memorybus_providers.holographic.writing.judgements import Judgements
from memorybus_providers.holographic.writing.sessions import Sessions
from memorybus_providers.holographic.writing.utterances import Utterances


class HolographicStore:
    """Owns the connection.

    Args:
        path: the database.
        clock: time.
        searching: makes the search over it.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        searching: Callable[[sqlite3.Connection], FactSearch] = FactSearch,
    ) -> None:
        """Open the database, creating it if it is missing.

        Raises:
            Unavailable: the file is no database, damaged or of another release.
        """
        self.path = path
        self.db = schema.connect(path, clock)
        self._ledger = ledger.Ledger(self.db)
        self._version = 0
        self._places = Sessions(self.db)
        self.utterances = Utterances(self.db, self._places)
        self.kept = KeptFacts(self.db, self._places)
        self.corrections = Corrections(self.db, self._places)
        self.recall = searching(self.db)
        judgements = Judgements(self.db, self._places)
        self.reading = ReadingTools(self.db, self.recall)
        self.tools = WritingTools(self.db, self.kept, self.corrections, judgements)

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        self.db.close()

    @contextmanager
    def lane(self, fence: Fence) -> Iterator[Transaction]:
        """Open the transaction of a lane's owner (see `ledger.Ledger.transaction`)."""
        with (
            self.translated(),
            self._undone_on_failure(),
            self._ledger.transaction(fence) as opened,
        ):
            self._look_again()
            yield opened
            self.utterances.flush()

    @contextmanager
    def writing(self, *, wait: bool = True) -> Iterator[None]:
        """Join the open transaction, or open one and commit it.

        Args:
            wait: whether to wait for another process's transaction to end.

        Raises:
            Transient: another process holds the database.
        """
        with self.translated():
            if self.db.in_transaction:
                yield
            else:
                self._begin(wait=wait)
                with self._undone_on_failure():
                    self._look_again()
                    yield
                    self.utterances.flush()
                    self.db.execute("commit")

    @contextmanager
    def writing_in_order(self, *, wait: bool = True) -> Iterator[None]:
        """Write as `writing` does, after pending utterances: rows keep the order of events."""
        with self.writing(wait=wait):
            self.utterances.flush()
            yield

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn SQLite's errors into the provider's (see `memorybus_providers.errors`)."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise ledger.translated(error) from error
        except sqlite3.DatabaseError as error:
            # A subclass means one statement; the class itself means that the file is damaged.
            if type(error) is sqlite3.DatabaseError:
                raise schema.damaged(self.path, error) from error
            raise

    @contextmanager
    def _undone_on_failure(self) -> Iterator[None]:
        """Roll back, and forget the cached row numbers that a rollback takes back."""
        try:
            yield
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("rollback")
            self._places.forget()
            self.utterances.forget()
            raise

    def _look_again(self) -> None:
        """Forget cached row numbers if others have written: an erasure removes rows."""
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
