"""A fake Hindsight server on loopback: the routes of API 1.1.0 that the provider uses.

Written from the answers of the real server without a model, which `tests/backends` runs: a
document is one memory, verbatim; recall finds those that share a word with the question.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from helpers.services.fake_http import serving
from helpers.services.faulty_http import FaultyHandler, FaultyServer, Refused

_WORD = re.compile(r"\w+")
_TIME = "2026-01-01T00:00:00+00:00"
_OFF = (
    "observations",
    "mcp",
    "worker",
    "bank_config_api",
    "bank_llm_health",
    "file_upload_api",
    "document_export_api",
    "document_import_api",
    "audit_log",
    "llm_trace",
)

Answer = tuple[int, Any]


class FakeHindsight(FaultyServer):
    """What it holds.

    Attributes:
        banks: by bank, the items that were retained, by document.
        retained: bank and document of every item that was taken, in order.
        operations: the ids of queued retains, in order, with bank and document of the item.
        queueing: whether queued retains stay in the queue.
        features: what ``/version`` says.
        recalls: the bodies of recalls and reflections.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.banks: dict[str, dict[str, dict[str, Any]]] = {}
        self.retained: list[tuple[str, str]] = []
        self.operations: dict[str, tuple[str, str]] = {}
        self.queueing = False
        self.features = {"store_document_text": True, **dict.fromkeys(_OFF, False)}
        self.recalls: list[dict[str, Any]] = []

    def texts(self) -> list[str]:
        """Return all texts that it holds."""
        return [item["content"] for bank in self.banks.values() for item in bank.values()]


class _Handler(FaultyHandler):
    server: FakeHindsight

    def answer(self, method: str, body: Any) -> Any:
        asked = urlsplit(self.path)
        parts = [unquote(part) for part in asked.path.strip("/").split("/")]
        if parts == ["version"]:
            return {"api_version": "1.1.0", "features": self.server.features}
        route = _ROUTES.get((method, len(parts), *parts[4:5]))
        if route is None or parts[:3] != ["v1", "default", "banks"]:
            raise Refused(404, {"detail": "Not Found"})
        status, value = route(self.server, parts[3:], parse_qs(asked.query), body or {})
        if status != 200:
            raise Refused(status, value)
        return value


Query = Mapping[str, list[str]]


def _retain(server: FakeHindsight, parts: list[str], query: Query, body: Any) -> Answer:
    bank, items = parts[0], body["items"]
    if not all(item["content"].strip() for item in items):
        return 422, {"detail": [{"msg": "content cannot be empty", "input": items[0]["content"]}]}
    operation = body.get("operation_id") if body["async"] else None
    answer = {"success": True, "bank_id": bank, "items_count": len(items), "async": body["async"]}
    if operation in server.operations:
        if server.operations[operation][0] != bank:
            return 409, {"detail": f"operation_id {operation} is already in use"}
        return 200, {**answer, "operation_id": operation}
    for item in items:
        if operation:
            server.operations[operation] = (bank, item["document_id"])
        server.retained.append((bank, item["document_id"]))
        held = server.banks.setdefault(bank, {})
        held.pop(item["document_id"], None)
        held[item["document_id"]] = item
    return 200, {**answer, "operation_id": operation}


def _recall(server: FakeHindsight, parts: list[str], query: Query, body: Any) -> Answer:
    server.recalls.append(body)
    bank = server.banks.get(parts[0])
    if bank is None:
        return 404, {"detail": f"Bank '{parts[0]}' not found"}
    wanted = set(_WORD.findall(body["query"].lower()))
    if not wanted:
        return 422, {"detail": [{"msg": "query must contain a word", "input": body["query"]}]}
    found = [
        (len(wanted & set(_WORD.findall(item["content"].lower()))), item)
        for item in bank.values()
        if _tagged(item, body["tags"], body["tags_match"])
    ]
    best = sorted((one for one in found if one[0]), key=lambda one: -one[0])
    return 200, {"results": [_result(item, score) for score, item in best]}


def _reflect(server: FakeHindsight, parts: list[str], query: Query, body: Any) -> Answer:
    status, answer = _recall(server, parts, query, body)
    if status != 200:
        return status, answer
    return 200, {"text": " / ".join(one["text"] for one in answer["results"])}


def _result(item: dict[str, Any], score: int) -> dict[str, Any]:
    return {
        "id": item["document_id"],
        "text": item["content"],
        "type": "world",
        "mentioned_at": item["timestamp"],
        "document_id": item["document_id"],
        "metadata": item["metadata"],
        "tags": item["tags"],
        "scores": {"final": score / 100},
    }


def _listed(server: FakeHindsight, parts: list[str], query: Query, body: Any) -> Answer:
    bank = server.banks.get(parts[0])
    if bank is None:
        return 404, {"detail": f"Bank '{parts[0]}' not found"}
    needle = query.get("q", [""])[0].lower()
    found = [
        {"id": name, "bank_id": parts[0], "tags": item["tags"]}
        for name, item in bank.items()
        if needle in name.lower() or needle in item["content"].lower()
        if _tagged(item, query.get("tags", []), query["tags_match"][0])
    ]
    limit, offset = int(query["limit"][0]), int(query["offset"][0])
    page = found[offset : offset + limit]
    return 200, {"items": page, "total": len(found), "limit": limit, "offset": offset}


def _tagged(item: dict[str, Any], tags: list[str], match: str) -> bool:
    own = set(item["tags"])
    return (set(tags) <= own) if match == "all_strict" else (not own or bool(set(tags) & own))


def _document(server: FakeHindsight, parts: list[str], query: Query, body: Any) -> Answer:
    item = server.banks.get(parts[0], {}).get(parts[2])
    if item is None:
        return 404, {"detail": "Document not found"}
    kept = bool(server.features["store_document_text"])
    return 200, {
        "id": parts[2],
        "bank_id": parts[0],
        "original_text": item["content"] if kept else None,
        "content_hash": None,
        "created_at": _TIME,
        "updated_at": _TIME,
        "memory_unit_count": 1,
        "tags": item["tags"],
        "document_metadata": item["metadata"],
    }


def _delete(server: FakeHindsight, parts: list[str], query: Query, body: Any) -> Answer:
    if server.banks.get(parts[0], {}).pop(parts[2], None) is None:
        return 404, {"detail": "Document not found"}
    told = {"success": True, "message": "", "document_id": parts[2], "memory_units_deleted": 1}
    return 200, told


def _banks(server: FakeHindsight, parts: list[str], query: Query, body: Any) -> Answer:
    names = [name for name in server.banks if query.get("q", [""])[0] in name]
    limit, offset = int(query["limit"][0]), int(query["offset"][0])
    mind = {"skepticism": 3, "literalism": 3, "empathy": 3}
    page = [
        {"bank_id": name, "name": name, "mission": "", "disposition": mind}
        for name in names[offset : offset + limit]
    ]
    return 200, {"banks": page, "total": len(names), "limit": limit, "offset": offset}


def _drop(server: FakeHindsight, parts: list[str], query: Query, body: Any) -> Answer:
    gone = server.banks.pop(parts[0], {})
    return 200, {"success": True, "message": "", "deleted_count": len(gone)}


def _queue(server: FakeHindsight, parts: list[str], query: Query, body: Any) -> Answer:
    waiting = server.operations if server.queueing and query["status"] == ["pending"] else {}
    told = {"items_count": 1, "created_at": _TIME, "status": "pending", "error_message": None}
    listed = [
        {"id": one, "task_type": "retain", "document_id": name, **told}
        for one, (_, name) in waiting.items()
    ]
    return 200, {
        "bank_id": parts[0],
        "total": len(listed),
        "limit": 100,
        "offset": 0,
        "operations": listed,
    }


_ROUTES: Mapping[tuple[Any, ...], Callable[[FakeHindsight, list[str], Query, Any], Answer]] = (
    MappingProxyType(
        {
            ("GET", 3): _banks,
            ("DELETE", 4): _drop,
            ("POST", 5, "memories"): _retain,
            ("POST", 6, "memories"): _recall,
            ("POST", 5, "reflect"): _reflect,
            ("GET", 5, "documents"): _listed,
            ("GET", 6, "documents"): _document,
            ("DELETE", 6, "documents"): _delete,
            ("GET", 5, "operations"): _queue,
        }
    )
)
"""By method, the number of the path's parts, and the part behind the bank."""


def fake_hindsight() -> AbstractContextManager[FakeHindsight]:
    """Serve while the block runs."""
    return serving(FakeHindsight())
