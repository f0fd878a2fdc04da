"""Whose memories a request means, and the links that mean the same; pure."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from memorybus.operations.memories.browsing import KeptMemory
from memorybus.recall.model import RecallRequest

OWNER: Final = ("user", "agent", "workspace")
"""The fields that say whose. One that is missing or empty stands for everyone's; only a workspace
that is there and empty is one like any other: none."""


_LONGEST = 15
"""Digits of a time."""


def whose_of(fields: Mapping[str, str]) -> RecallRequest:
    """Return whose memories some fields mean."""
    return RecallRequest(
        query="",
        agent=fields.get("agent") or None,
        user=fields.get("user") or None,
        workspace=fields.get("workspace"),
    )


def owner_of(fields: Mapping[str, str]) -> dict[str, str]:
    """Return of some fields those that say whose."""
    there = {name: fields[name] for name in OWNER if name in fields}
    return {name: value for name, value in there.items() if value or name == "workspace"}


def event_link(memory: KeptMemory) -> str:
    """Return where the event of a memory is shown; "" if nobody knows it."""
    if not memory.event:
        return ""
    owner = {"user": memory.user, "agent": memory.agent, "workspace": memory.workspace}
    where: dict[str, str | int] = {
        "event": memory.event,
        "session": memory.session,
        "at": memory.at,
    }
    return link("/memories/event", owner, where)


def memory_of(fields: Mapping[str, str]) -> KeptMemory:
    """Return of a memory what `event_link` tells of it."""
    user, agent, workspace, event, session, at = (
        fields.get(name, "") for name in (*OWNER, "event", "session", "at")
    )
    when = int(at) if at.isdecimal() and len(at) <= _LONGEST else 0
    return KeptMemory("", agent, user, workspace, session=session, at=when, event=event)


def link(path: str, *parts: Mapping[str, str | int]) -> str:
    """Return a path with fields behind the question mark; of one field the last value."""
    fields: dict[str, str | int] = {}
    for part in parts:
        fields |= part
    return f"{path}?{urlencode(fields)}"
