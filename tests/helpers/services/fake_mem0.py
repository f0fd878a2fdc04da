"""A fake self-hosted Mem0 server on loopback: the routes that the provider uses.

Written from the documented routes and from what Mem0's library 2.2.1 does behind them (which
`tests/backends` runs): each message is a memory, verbatim; search finds those that share a word.
"""

import re
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from helpers.services.fake_http import serving
from helpers.services.faulty_http import FaultyHandler, FaultyServer, Refused

_WORD = re.compile(r"\w+")
_IDS = ("agent_id", "user_id", "run_id")


class FakeMem0(FaultyServer):
    """What it holds.

    Attributes:
        rows: the memories, by id.
        infers: the ``infer`` of each write.
        shown: how many memories a listing shows at most; None for as many as are asked for.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.rows: dict[str, dict[str, Any]] = {}
        self.infers: list[bool] = []
        self.shown: int | None = None
        self._made = 0

    def texts(self) -> list[str]:
        """Return all texts that it holds."""
        return [row["memory"] for row in self.rows.values()]

    def store(self, body: dict[str, Any]) -> None:
        """Store a request's messages, a row each."""
        self.infers.append(body["infer"])
        for message in body["messages"]:
            self._made += 1
            ids = {name: body[name] for name in _IDS}
            row = {"id": f"m{self._made}", "memory": message["content"], **ids}
            self.rows[row["id"]] = {**row, "metadata": body["metadata"]}


class _Handler(FaultyHandler):
    server: FakeMem0

    def answer(self, method: str, body: Any) -> Any:
        asked = urlsplit(self.path)
        query = dict(parse_qsl(asked.query))
        ids = {name: query[name] for name in _IDS if name in query}
        rows = self.server.rows
        match method, asked.path:
            case "POST", "/memories":
                self.server.store(body)
                return {"results": []}
            case "POST", "/search":
                return {"results": _found(rows, body)}
            case "GET", "/memories":
                found = [row for row in rows.values() if _matches(row, ids)]
                return {"results": found[: self.server.shown or int(query["top_k"])]}
            case "DELETE", "/memories" if ids:
                for row in [row for row in rows.values() if _matches(row, ids)]:
                    del rows[row["id"]]
                return {"message": "All relevant memories deleted"}
            case "DELETE", path if path.startswith("/memories/"):
                if rows.pop(path.removeprefix("/memories/"), None) is None:
                    raise Refused(404, {"detail": "Memory not found"})
                return {"message": "Memory deleted successfully"}
        raise Refused(404, {"detail": "Not Found"})


def _found(rows: dict[str, dict[str, Any]], asked: dict[str, Any]) -> list[dict[str, Any]]:
    wanted = set(_WORD.findall(asked["query"].lower()))
    scored = [
        {**row, "score": len(wanted & set(_WORD.findall(row["memory"].lower()))) / 100}
        for row in rows.values()
        if _matches(row, asked["filters"])
    ]
    best = sorted((row for row in scored if row["score"]), key=lambda row: -row["score"])
    return best[: asked["top_k"]]


def _matches(row: dict[str, Any], filters: dict[str, Any]) -> bool:
    told = {**row["metadata"], **row}
    return all(value in ("*", told.get(name)) for name, value in filters.items())


def fake_mem0() -> AbstractContextManager[FakeMem0]:
    """Serve while the block runs."""
    return serving(FakeMem0())
