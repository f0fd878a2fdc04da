"""Keeps the results of tools that write, so that a repeated call changes nothing."""

from memorybus_providers.postgres.link import Connection
from memorybus_providers.postgres.texts import decode_text, encode_text
from memorybus_providers.remembering.parts import RESULTS_KEPT

_OF = "select result from tool_results where event_id = %s"
_KEEP = "insert into tool_results(event_id, result) values (%s, %s) returning seq"
_FORGET = "delete from tool_results where seq <= %s"


class PostgresResults:
    """Reads and writes results in the transaction that `db` has open."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def get(self, event_id: str) -> str | None:
        """Return the result of an earlier run of a call; None if there is none."""
        row = self._db.execute(_OF, (bytes.fromhex(event_id),)).fetchone()
        return None if row is None else decode_text(row[0])

    def put(self, event_id: str, result: str) -> None:
        """Remember a result; the oldest beyond `RESULTS_KEPT` are forgotten."""
        row = self._db.execute(_KEEP, (bytes.fromhex(event_id), encode_text(result))).fetchone()
        if row is not None:
            self._db.execute(_FORGET, (row[0] - RESULTS_KEPT,))
