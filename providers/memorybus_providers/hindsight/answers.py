"""What Hindsight answers, as the bus has it; pure."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from memorybus_providers.base import Recollection, StoredMemory
from memorybus_providers.hindsight import sessions
from memorybus_providers.hindsight.documents import Kept
from memorybus_providers.remote.texts import parse_milliseconds

if TYPE_CHECKING:
    from hindsight_client_api.models.recall_result import RecallResult


def recollected(result: "RecallResult") -> Recollection:
    """Return a memory; what Hindsight derived of several has no event."""
    told = result.metadata or {}
    scores = result.scores
    return Recollection(
        text=result.text,
        session=told.get("session", ""),
        at=parse_milliseconds(told.get("at"))
        or _parse_time(result.occurred_start or result.mentioned_at),
        score=float(scores.final or 0.0) if scores else 0.0,
        source=result.type or "",
        event=told.get("event", ""),
    )


def shown(result: "RecallResult") -> dict[str, Any]:
    """Return a memory as a model is shown it."""
    return {
        "text": result.text,
        "kind": result.type or "",
        "at": result.occurred_start or result.mentioned_at or "",
    }


def stored(kept: Kept) -> Iterator[StoredMemory]:
    """Yield what a document holds: each message of a session's, else its whole text."""
    told = kept.metadata
    whole = StoredMemory(
        text=kept.text,
        agent=told.get("agent", ""),
        user=told.get("user", ""),
        workspace=told.get("workspace", ""),
        kind=kept.kind,
        session=told.get("session", ""),
        at=kept.at,
        event=told.get("event", ""),
    )
    if kept.kind != sessions.KIND:
        yield whole
        return
    for one in sessions.messages_of(kept.text):
        yield msgspec.structs.replace(
            whole, text=one.content, speaker=one.name, event=one.event, at=one.at
        )


def _parse_time(written: str | None) -> int:
    """Return a time that Hindsight writes, milliseconds; 0 if `written` is none."""
    try:
        return int(datetime.fromisoformat(written or "").timestamp() * 1_000)
    except ValueError:
        return 0
