"""Keeps the results of tools that write, so that a repeated call changes nothing."""

import sqlite3

from memorybus_providers.remembering.parts import RESULTS_KEPT


class SqliteResults:
    """Reads and writes results, inside the transaction that its caller has open."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def get(self, event_id: str) -> str | None:
        """Return the result of an earlier run of a call; None if there is none."""
        query = "select result from tool_results where event_id = ?"
        row = self._db.execute(query, (bytes.fromhex(event_id),)).fetchone()
        return None if row is None else str(row[0])

    def put(self, event_id: str, result: str) -> None:
        """Remember a result; the oldest beyond `RESULTS_KEPT` are forgotten."""
        seq = self._db.execute(
            "insert into tool_results(event_id, result) values (?, ?) returning seq",
            (bytes.fromhex(event_id), result),
        ).fetchone()[0]
        self._db.execute("delete from tool_results where seq <= ?", (seq - RESULTS_KEPT,))
