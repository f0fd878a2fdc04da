"""Mem0's self-hosted server, by HTTP.

``mem0.MemoryClient`` speaks to the cloud alone; the server's own routes are ``/memories`` and
``/search``, its key is the header ``X-API-Key``. It lists by ids only, and 20 memories at most if
it does not know ``top_k``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec
import urllib3
from memorybus.clock import Clock
from memorybus.errors import Permanent, Transient, Unavailable

from memorybus_providers.mem0.memories import Filters, Messages, Owner, Row
from memorybus_providers.mem0.options import ServerOptions
from memorybus_providers.remote import failures, truce

_MOST_BYTES = 1 << 26
"""Of an answer (G10)."""

_SHARE = 0.9
"""Of a hook's deadline that one request may take."""

_HISTORY = (
    "Mem0's server keeps the texts of deleted memories in its history database (HISTORY_DB_PATH, "
    "tables history and messages); delete these rows there"
)
_MOST = 100_000
_SHOWN_AT_MOST = 20
_ENTRIES = 100


class _Listed(msgspec.Struct, frozen=True):
    results: list[Row]


class ServerStore:
    """A server. It follows no redirect: a key goes where the settings say, nowhere else."""

    def __init__(self, options: ServerOptions, key: str, clock: Clock) -> None:
        """Connect to nothing yet."""
        self._url, self._key, self._clock = options.base_url.rstrip("/"), key, clock
        self._truce = truce.Truce(clock)
        self._pool = urllib3.PoolManager(retries=False, maxsize=16)

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def add(
        self,
        messages: Messages,
        owner: Owner,
        run: str,
        metadata: dict[str, str],
        *,
        infer: bool,
        deadline: float,
    ) -> None:
        """Store what was said in a run."""
        body = {
            "messages": [{"role": one["role"], "content": one["content"]} for one in messages],
            "agent_id": owner.agent_id,
            "user_id": owner.user_id,
            "run_id": run,
            "metadata": metadata,
            "infer": infer,
        }
        self._asked("POST", "/memories", deadline, body=body)

    def of_run(self, owner: Owner, run: str, deadline: float) -> Sequence[Row]:
        """Return what came from a run."""
        return self._by_ids({**msgspec.structs.asdict(owner), "run_id": run}, deadline)

    def search(self, query: str, filters: Filters, most: int, deadline: float) -> Sequence[Row]:
        """Return memories with these ids and metadata, best first."""
        body = {"query": query, "filters": dict(filters), "top_k": most}
        return self._rows("POST", "/search", deadline, body=body)

    def containing(self, text: str, filters: Filters, deadline: float) -> Sequence[Row]:
        """Return memories in which a text stands, of those that are nearest to it."""
        found = self.search(text, filters, _ENTRIES, deadline)
        return [row for row in found if text in row.memory]

    def listed(self, filters: Filters, deadline: float) -> Iterator[Row]:
        """Yield all memories with these ids and metadata.

        Raises:
            Permanent: the server shows no more than 20 of them, and may have others.
        """
        ids = {name: value for name, value in filters.items() if name.endswith("_id")}
        rest = {name: value for name, value in filters.items() if name not in ids}
        rows = self._by_ids(ids, deadline)
        yield from (row for row in rows if all(row.told(n) == v for n, v in rest.items()))
        if len(rows) == _SHOWN_AT_MOST:
            raise Permanent(f"Mem0's server lists {_SHOWN_AT_MOST} memories at most: some may lack")

    def delete(self, row: str, deadline: float) -> None:
        """Delete a memory; one that is not there is no error."""
        try:
            self._asked("DELETE", f"/memories/{row}", deadline)
        except _Absent:
            return

    def delete_all(self, ids: Filters, deadline: float) -> None:
        """Delete all memories with these ids."""
        self._asked("DELETE", f"/memories?{urlencode(ids)}", deadline)

    def residue(self) -> tuple[str, ...]:
        """Say what a deletion leaves on the server."""
        return (_HISTORY,)

    def _by_ids(self, ids: Mapping[str, str], deadline: float) -> list[Row]:
        query = urlencode({**ids, "top_k": _MOST})
        return self._rows("GET", f"/memories?{query}", deadline)

    def _rows(self, method: str, path: str, deadline: float, *, body: Any = None) -> list[Row]:
        answered = self._asked(method, path, deadline, body=body)
        try:
            return msgspec.json.decode(answered, type=_Listed).results
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise Transient(f"Mem0's answer is none: {type(error).__name__}") from error

    def _asked(self, method: str, path: str, deadline: float, *, body: Any = None) -> bytes:
        self._truce.check("Mem0")
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["X-API-Key"] = self._key
        try:
            answer = self._pool.request(
                method,
                self._url + path,
                body=None if body is None else msgspec.json.encode(body),
                headers=headers,
                redirect=False,
                timeout=urllib3.Timeout(total=_SHARE * deadline),
                preload_content=False,
            )
            said = answer.read(_MOST_BYTES)
            answer.release_conn()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            told = failures.quoted(str(error), self._key)
            raise failures.of_connection(error, f"Mem0: {told}") from error
        if answer.status >= 300:
            raise self._refusal(answer.status, said, answer.headers.get("Retry-After"))
        return said

    def _refusal(self, status: int, said: bytes, retry_after: str | None) -> Exception:
        told = failures.quoted(failures.complaint(said), self._key)
        if status == 404 and "not found" in told and "Memory" in told:
            return _Absent(told)
        if status == 429:
            self._truce.asked(truce.seconds_of(retry_after, self._clock.now_ms()))
        return failures.of_status(status, f"Mem0 answers {status}: {told}")


class _Absent(Unavailable):
    """The memory is not there."""
