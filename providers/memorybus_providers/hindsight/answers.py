"""Turns Hindsight's answers into structs of the bus; pure."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from memorybus_providers.base import Recollection, StoredMemory
from memorybus_providers.hindsight.documents import StoredDocument
from memorybus_providers.remote.texts import parse_milliseconds

if TYPE_CHECKING:
    from hindsight_client_api.models.recall_result import RecallResult


def to_recollection(result: "RecallResult") -> Recollection:
    """Return a memory; one that Hindsight derived from several events names no event."""
    metadata = result.metadata or {}
    scores = result.scores
    return Recollection(
        text=result.text,
        session=metadata.get("session", ""),
        at=parse_milliseconds(metadata.get("at"))
        or _parse_time(result.occurred_start or result.mentioned_at),
        score=float(scores.final or 0.0) if scores else 0.0,
        source=result.type or "",
        event=metadata.get("event", ""),
    )


def to_tool_result(result: "RecallResult") -> dict[str, Any]:
    """Return a memory as a model sees it."""
    return {
        "text": result.text,
        "kind": result.type or "",
        "at": result.occurred_start or result.mentioned_at or "",
    }


def to_stored_memory(document: StoredDocument) -> StoredMemory:
    """Return what a document keeps."""
    metadata = document.metadata
    return StoredMemory(
        text=document.text,
        agent=metadata.get("agent", ""),
        user=metadata.get("user", ""),
        workspace=metadata.get("workspace", ""),
        kind=document.kind,
        session=metadata.get("session", ""),
        at=document.at,
        event=metadata.get("event", ""),
    )


def _parse_time(written: str | None) -> int:
    """Return a time as Hindsight writes it, in milliseconds; 0 if `written` is not a time."""
    try:
        return int(datetime.fromisoformat(written or "").timestamp() * 1_000)
    except ValueError:
        return 0
