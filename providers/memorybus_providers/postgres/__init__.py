"""Keeps facts in PostgreSQL, where any number of workers write to and recall from one memory.

Where to look:

- ``provider``: how an instance is opened; the hooks are in `memorybus_providers.fact_provider`.
- ``link``: a connection, its transactions, and what its errors mean. ``migrations``: the tables.
- ``store``: the open connections. ``ledger``: lanes and applied events. ``digest``: the state (G8).
- ``erasure``: exports and erases what is stored of a person or an agent.
- ``writing``: ``places`` (scopes and sessions), ``index`` (facts and their words), ``utterances``,
  ``notes``, ``corrections``, ``judgements``, ``results``.
- ``finding``: ``source`` answers what a search asks, ``rows`` reads facts.
- ``meaning``: the vectors of facts, if an embedder is configured.
- ``texts``: which texts Postgres can store.

Facts of psycopg 3.3 and PostgreSQL 15 to 18 that the code relies on:

- With ``prepare_threshold=None`` no statement is prepared by name, so that a pooler in transaction
  mode (PgBouncer) may give each transaction another server connection. ``set local`` and
  ``pg_advisory_xact_lock`` end with their transaction.
- `unnest` of several arrays makes one row of their first elements, one of their second ones, and so
  on; a ``copy`` takes rows in one stream.
- A statement's snapshot is older than a lock for which the statement waits. So an advisory lock is
  taken by one statement, and the next one reads what the lock protects.
"""

from memorybus_providers.postgres.provider import PostgresProvider

__all__ = ["PostgresProvider"]
