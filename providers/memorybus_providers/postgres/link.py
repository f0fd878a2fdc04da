"""One connection to the server, its transactions, and what its errors mean."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import psycopg
from memorybus.errors import ProviderError, Transient, Unavailable
from psycopg import errors, sql

from memorybus_providers.postgres.options import Where

Connection = psycopg.Connection[tuple[Any, ...]]

STATEMENT_SECONDS = 10.0
"""Seconds that a statement of a lane may take, and that it may wait for a lock."""

CONNECT_SECONDS = 5  # seconds for a new connection; libpq does not accept fewer than 2

_MAX_ERROR_CHARS = 300
_TRANSIENT_ERRORS: Final = (
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.LockNotAvailable,
    errors.QueryCanceled,
    errors.UniqueViolation,
)
"""Errors that may not occur at the next try: locks, time limits, a row that another one made."""

_ACCESS_ERRORS: Final = (
    errors.InsufficientPrivilege,
    errors.InvalidSchemaName,
    errors.UndefinedObject,
    errors.UndefinedTable,
)


class Link:
    """A connection that is made when it is needed, and again after it broke. For one thread."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._db: Connection | None = None

    @contextmanager
    def transaction(self, seconds: float, *, reading: bool = False) -> Iterator[Connection]:
        """Open a transaction; leaving normally commits, an exception rolls back.

        Args:
            seconds: how long each statement may take.
            reading: whether it only reads, from one snapshot.

        Raises:
            Transient: a lock or a statement took too long.
            Unavailable: the server is away, full, or refuses us.
        """
        with translating_errors():
            db = self._begin_on_connection(
                _begin_statement(self._where.schema, seconds, reading=reading)
            )
            try:
                yield db
                db.execute("commit")
            except BaseException:
                self._abandon(db)
                raise

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _begin_on_connection(self, begin: sql.Composed) -> Connection:
        """Begin a transaction, on a new connection if the server has closed the old one."""
        if self._db is not None:
            with suppress(psycopg.OperationalError):
                self._db.execute(begin)
                return self._db
            self.close()
        self._db = db = connect(self._where)
        db.execute(begin)
        return db

    def _abandon(self, db: Connection) -> None:
        """Roll back; a connection that cannot do so is closed."""
        try:
            db.execute("rollback")
        except psycopg.Error:
            self.close()


def confine(db: Connection, reader: str, scopes: Sequence[int]) -> None:
    """Let the open transaction read as a role, and see only these scopes until it ends.

    The server enforces this for every statement, because each table has a policy.
    """
    with db.pipeline():
        named = ",".join(map(str, scopes))
        db.execute("select set_config('memorybus.scopes', %s, true)", (named,))
        db.execute(sql.SQL("set local role {}").format(sql.Identifier(reader)))


def connect(where: Where) -> Connection:
    """Return a new connection that commits each statement by itself."""
    given: dict[str, Any] = {"password": where.password} if where.password else {}
    return psycopg.connect(
        where.url, autocommit=True, prepare_threshold=None, connect_timeout=CONNECT_SECONDS, **given
    )


@contextmanager
def translating_errors() -> Iterator[None]:
    """Turn psycopg's errors into the provider's.

    Errors about the data (SQLSTATE classes 22 and 23) are not translated: they are our own bugs.
    """
    try:
        yield
    except psycopg.Error as error:
        provider_error = provider_error_of(error)
        if provider_error is None:
            raise
        raise provider_error from None


def provider_error_of(error: psycopg.Error) -> ProviderError | None:
    """Return the provider's error for an error of server or connection; None for our own bug.

    The error's detail is left out, since the server quotes values in it.
    """
    said = error.diag.message_primary or (str(error).splitlines() or [""])[0]
    message = f"Postgres: {type(error).__name__}: {said}"[:_MAX_ERROR_CHARS]
    if isinstance(error, _TRANSIENT_ERRORS):
        return Transient(message)
    ours = isinstance(error, psycopg.DataError | psycopg.IntegrityError | psycopg.ProgrammingError)
    return None if ours and not _is_refusal(error) else Unavailable(message)


def _is_refusal(error: psycopg.Error) -> bool:
    """Return whether an error is about our privileges, or about missing tables."""
    return isinstance(error, _ACCESS_ERRORS)


def _begin_statement(schema: str, seconds: float, *, reading: bool) -> sql.Composed:
    """Return the statements that begin a transaction, as one message."""
    mode = "isolation level repeatable read, read only" if reading else "read write"
    limit = max(1, round(seconds * 1000))
    return sql.SQL(
        f"begin {mode}; set local search_path to {{}}, public;"
        f" set local statement_timeout = {limit}; set local lock_timeout = {limit}"
    ).format(sql.Identifier(schema))
