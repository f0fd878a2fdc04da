"""Shows facts to a model."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from memorybus_providers.ranking.ranking import LAST_MS, Fact, Scored

ToolResult = dict[str, Any]


def failure_result(why: str) -> ToolResult:
    """Return the result of a call that failed and changed nothing."""
    return {"ok": False, "error": why}


def show_facts(found: Iterable[Fact]) -> list[ToolResult]:
    """Return facts as they are shown."""
    return [show_fact(fact) for fact in found]


def show_scored(found: Iterable[Scored]) -> list[ToolResult]:
    """Return facts as they are shown, with `until` and `before`."""
    return [show_fact(one.fact, one.until, one.before) for one in found]


def show_fact(fact: Fact, until: int = 0, before: str = "") -> ToolResult:
    """Return a fact as it is shown."""
    marks = {"until": iso(until)} if until else {}
    marks |= {"before": before} if before else {}
    return {
        "id": fact.name,
        "text": fact.content,
        "kind": fact.kind,
        "speaker": fact.speaker,
        "session": fact.session,
        "at": iso(fact.at),
        "trust": fact.trust,
        "category": fact.category,
        "tags": fact.tags.split(),
        **marks,
    }


def iso(at: int) -> str:
    """Return a time in milliseconds as ISO 8601, to the second."""
    said = datetime.fromtimestamp(min(max(at, 0), LAST_MS) / 1000, UTC)
    return said.isoformat(timespec="seconds")
