"""Measures what a turn cost: how much Hermes's own totals grew between its start and its end.

Hermes 0.19 passes a memory provider neither the model nor the tokens, and its ``state.db`` has
totals of sessions, not of turns: what is not noted at once cannot be found out later. Other
processes may have continued the session meanwhile, so the total before a turn is read when the turn
starts. Hermes may report a turn after the next one has begun; then the start of the next one counts
as its end.
"""

import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from memorybus_hermes.transcripts.scaffolding import user_text
from memorybus_hermes.transcripts.state_db import SessionUsage, read_usage

_MAX_REMEMBERED = 64
"""The most turns that wait for their end; older ones are published without tokens (G10)."""

_DECIMALS = 9  # of a turn's cost: a billionth of a dollar, beyond which sums are rounding errors

_MAX_NAME_CHARS = 200  # the most characters of a model's or a platform's name


class TurnUsage(msgspec.Struct, frozen=True):
    """What a turn or a sub-agent used; an unknown value keeps its default.

    Attributes:
        cost: US dollars of a turn. It is unknown if Hermes lacks the price of one of its calls, and
            if a service billed a model of which Hermes had only estimated the cost before.
    """

    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    tool_count: int = -1
    cost: float = -1.0


class TurnStart(msgspec.Struct, frozen=True):
    """A turn that has begun."""

    session: str
    said: str
    model: str  # the model that the hook named, or ""
    total: SessionUsage | None  # the session's totals before it; None if they could not be read


class UsageMeter:
    """Measures the turns of one instance. Any thread may call it; it waits for a lock of Hermes
    a moment only.

    Args:
        path: Hermes's ``state.db``; None if there is none, so that nothing is known.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._starts: deque[TurnStart] = deque(maxlen=_MAX_REMEMBERED)

    def begins(self, session: str, message: str, model: str) -> None:
        """Note the totals of a session when one of its turns starts."""
        start = TurnStart(session, _spoken_text(message), model, self._total(session))
        with self._lock:
            self._starts.append(start)

    def turn(self, session: str, user: str) -> TurnUsage:
        """Return what the turn that a user's words opened has used; call this once per turn."""
        with self._lock:
            start, following = self._take_start(session, _spoken_text(user))
        after = following.total if following else self._total(session)
        return _usage_between(start, after)

    def moved(self, session: str, new: str) -> None:
        """Note that a turn continues under another id, whose totals begin at 0."""
        total = self._total(session)
        with self._lock:
            own = [start for start in self._starts if start.session == session]
            if not own:
                return
            self._starts.remove(own[-1])
            owed = _subtract(own[-1].total, total)
            self._starts.append(msgspec.structs.replace(own[-1], session=new, total=owed))

    def delegation(self, child: str, usage: TurnUsage) -> TurnUsage:
        """Return what a sub-agent used: values of `usage`, or what Hermes counted."""
        total = self._total(child) if child else None
        if total is None or not total.model:
            return usage
        return TurnUsage(
            model=usage.model or total.model,
            tokens_in=usage.tokens_in or total.tokens_in,
            tokens_out=usage.tokens_out or total.tokens_out,
            tool_count=usage.tool_count if usage.tool_count >= 0 else total.tool_calls,
        )

    def _total(self, session: str) -> SessionUsage | None:
        return read_usage(self._path, session) if self._path else None

    def _take_start(self, session: str, said: str) -> tuple[TurnStart | None, TurnStart | None]:
        """Remove a turn's start and those before it, which were never reported as over.

        Returns:
            The start, and the next one in the same session, if there is one.
        """
        own = [start for start in self._starts if start.session == session]
        if not own:
            return None, None
        matching = [i for i, start in enumerate(own) if start.said == said]
        at = matching[-1] if matching else len(own) - 1
        for start in own[: at + 1]:
            self._starts.remove(start)
        return own[at], own[at + 1] if at + 1 < len(own) else None


def _spoken_text(text: str) -> str:
    return user_text(text).strip()


def _subtract(total: SessionUsage | None, other: SessionUsage | None) -> SessionUsage | None:
    if total is None or other is None:
        return None
    return SessionUsage(
        other.model,
        total.tokens_in - other.tokens_in,
        total.tokens_out - other.tokens_out,
        unpriced=total.unpriced - other.unpriced,
        cost=total.cost - other.cost,
    )


def _usage_between(start: TurnStart | None, after: SessionUsage | None) -> TurnUsage:
    """Return what was used between two totals; a total that shrank was reset, and says nothing."""
    model = (start.model if start else "") or (after.model if after else "")
    took = _subtract(after, start.total if start else None)
    if took is None:
        return TurnUsage(model)
    called = took.tokens_in > 0 or took.tokens_out > 0
    cost = round(took.cost, _DECIMALS) if called and took.unpriced <= 0 else -1.0
    return TurnUsage(
        model,
        max(0, took.tokens_in),
        max(0, took.tokens_out),
        cost=cost if cost >= 0 else -1.0,
    )


# -- what hooks say --------------------------------------------------------------------------------


def turn_start_details(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details of ``on_turn_start`` that Hermes's contract names, if they were given."""
    figures = {
        "model": _name(told.get("model")),
        "platform": _name(told.get("platform")),
        "remaining_tokens": _count(told.get("remaining_tokens")),
        "tool_count": _count(told.get("tool_count")),
    }
    return {name: value for name, value in figures.items() if value not in ("", -1)}


def delegation_usage(told: Mapping[str, Any]) -> TurnUsage:
    """Return the details of ``on_delegation``, by the names that Hermes uses for them elsewhere."""
    tokens = told.get("tokens")
    tokens = tokens if isinstance(tokens, Mapping) else {}
    return TurnUsage(
        model=_name(told.get("model")),
        tokens_in=max(0, _count(tokens.get("input"))),
        tokens_out=max(0, _count(tokens.get("output"))),
        tool_count=_count(told.get("tool_count")),
    )


def _name(value: object) -> str:
    return value[:_MAX_NAME_CHARS] if isinstance(value, str) else ""


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        return -1
    return value if 0 <= value < 1 << 63 else -1
