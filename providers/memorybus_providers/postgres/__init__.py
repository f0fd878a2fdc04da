"""Facts in PostgreSQL: one memory that any number of workers write to and recall from.

Where to look:

- ``provider``: options, and what `memorybus_providers.fact_provider` does not have.
- ``link``: a connection, its transactions, and what its errors mean. ``migrations``: the tables.
- ``store``: the open connections. ``ledger``: lanes and applied events. ``digest``: the state (G8).
- ``erasure``: exports and erases what is kept of a person or an agent.
- ``writing``: ``places`` (scopes and sessions), ``index`` (facts and their words), ``utterances``,
  ``notes``, ``corrections``, ``judgements``, ``results``.
- ``finding``: ``source`` answers what a search asks, ``rows``: how a fact is read.
- ``meaning``: the vectors of facts, if an embedder is configured.
- ``texts``: which texts Postgres can store.

Facts of psycopg 3.3 and PostgreSQL 15 to 18 that the code relies on:

- With ``prepare_threshold=None`` no statement is prepared by name, so that a pooler in transaction
  mode (PgBouncer) may give each transaction another server connection. ``set local`` and
  ``pg_advisory_xact_lock`` end with their transaction.
- `unnest` of several arrays goes through them side by side; a ``copy`` takes rows in one stream.
- An advisory lock is taken before the statement that reads behind it: a statement's snapshot is
  older than the lock that it waits for.
"""

from memorybus_providers.postgres.provider import PostgresProvider

__all__ = ["PostgresProvider"]
