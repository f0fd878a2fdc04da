"""Sends requests to a self-hosted server of Mem0 by HTTP.

``mem0.MemoryClient`` works only with Mem0's cloud. The server's routes are ``/memories`` and
``/search``; its key is sent in the header ``X-API-Key``. It lists by ids only, and a version that
does not know ``top_k`` lists at most 20 memories.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec
from memorybus.clock import Clock
from memorybus.errors import Permanent, ProviderError, Unavailable

from memorybus_providers.mem0.memories import Filters, Mem0Memory, Messages, OwnerIds
from memorybus_providers.mem0.options import Mem0ServerOptions
from memorybus_providers.remote.http import HttpService

_DEADLINE_SHARE = 0.9  # the part of a hook's deadline that one request may take

_HISTORY = (
    "Mem0's server keeps the texts of deleted memories in its history database (HISTORY_DB_PATH, "
    "tables history and messages); delete these rows there"
)
_MAX_MEMORIES = 100_000
_SHOWN_AT_MOST = 20
_MAX_ENTRIES = 100


class _RowList(msgspec.Struct, frozen=True):
    results: list[Mem0Memory]


class ServerStore:
    """A server of Mem0. May be used from several threads."""

    def __init__(self, options: Mem0ServerOptions, key: str, clock: Clock) -> None:
        self._http = _Http(options.base_url, {"X-API-Key": key} if key else {}, key, clock)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def add(
        self,
        messages: Messages,
        owner: OwnerIds,
        run: str,
        metadata: dict[str, str],
        *,
        infer: bool,
        deadline: float,
    ) -> None:
        """Store what was said in a run."""
        body = {
            "messages": [
                {"role": message["role"], "content": message["content"]} for message in messages
            ],
            "agent_id": owner.agent_id,
            "user_id": owner.user_id,
            "run_id": run,
            "metadata": metadata,
            "infer": infer,
        }
        self._request("POST", "/memories", deadline, body=body)

    def rows_of_run(self, owner: OwnerIds, run: str, deadline: float) -> Sequence[Mem0Memory]:
        return self._by_ids({**msgspec.structs.asdict(owner), "run_id": run}, deadline)

    def search(
        self, query: str, filters: Filters, most: int, deadline: float
    ) -> Sequence[Mem0Memory]:
        """Return memories with these ids and metadata, best first."""
        body = {"query": query, "filters": dict(filters), "top_k": most}
        return self._rows("POST", "/search", deadline, body=body)

    def rows_containing(self, text: str, filters: Filters, deadline: float) -> Sequence[Mem0Memory]:
        """Return those of the memories nearest to a text that contain it."""
        memories = self.search(text, filters, _MAX_ENTRIES, deadline)
        return [row for row in memories if text in row.memory]

    def list_rows(self, filters: Filters, deadline: float) -> Iterator[Mem0Memory]:
        """Yield all memories with these ids and metadata.

        Raises:
            Permanent: the server listed 20 memories, which may not be all.
        """
        ids = {name: value for name, value in filters.items() if name.endswith("_id")}
        rest = {name: value for name, value in filters.items() if name not in ids}
        rows = self._by_ids(ids, deadline)
        yield from (row for row in rows if all(row.metadata_value(n) == v for n, v in rest.items()))
        if len(rows) == _SHOWN_AT_MOST:
            raise Permanent(f"Mem0's server lists {_SHOWN_AT_MOST} memories at most: some may lack")

    def delete(self, row: str, deadline: float) -> None:
        """Delete a memory; it is not an error if it does not exist."""
        try:
            self._request("DELETE", f"/memories/{row}", deadline)
        except _MissingMemory:
            return

    def delete_all(self, ids: Filters, deadline: float) -> None:
        """Delete all memories with these ids."""
        self._request("DELETE", f"/memories?{urlencode(ids)}", deadline)

    def residue(self) -> tuple[str, ...]:
        """Return a sentence about the texts that a deletion leaves on the server."""
        return (_HISTORY,)

    def _by_ids(self, ids: Mapping[str, str], deadline: float) -> list[Mem0Memory]:
        query = urlencode({**ids, "top_k": _MAX_MEMORIES})
        return self._rows("GET", f"/memories?{query}", deadline)

    def _rows(
        self, method: str, path: str, deadline: float, *, body: Any = None
    ) -> list[Mem0Memory]:
        return self._http.request_json(
            _RowList, method, path, _DEADLINE_SHARE * deadline, body
        ).results

    def _request(self, method: str, path: str, deadline: float, *, body: Any = None) -> None:
        self._http.request(method, path, _DEADLINE_SHARE * deadline, body)


class _Http(HttpService):
    name = "Mem0"

    def error_for_status(self, status: int, detail: str) -> ProviderError:
        """Return a special error for a missing memory; any other 404 means a wrong address."""
        if status == 404 and "not found" in detail and "Memory" in detail:
            return _MissingMemory(detail)
        return super().error_for_status(status, detail)


class _MissingMemory(Unavailable):
    """The memory does not exist."""
