"""Reads from a request's fields whose memories to show, and makes links with them; pure."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from memorybus.recall.model import RecallRequest

from memorybus_console.operations.memories.browsing import KeptMemory

OWNER_FIELDS: Final = ("user", "agent", "workspace")
"""The fields that name the owner of memories. A missing or empty field stands for any owner; but
a workspace that is given and empty stands for memories without a workspace."""


_MAX_TIME_DIGITS = 15  # the most digits of a time in milliseconds


def want_of(fields: Mapping[str, str]) -> RecallRequest:
    return RecallRequest(
        query="",
        agent=fields.get("agent") or None,
        user=fields.get("user") or None,
        workspace=fields.get("workspace"),
    )


def owner_fields(fields: Mapping[str, str]) -> dict[str, str]:
    there = {name: fields[name] for name in OWNER_FIELDS if name in fields}
    return {name: value for name, value in there.items() if value or name == "workspace"}


def event_link(memory: KeptMemory) -> str:
    """Return a link to the event of a memory; "" if its event is unknown."""
    if not memory.event:
        return ""
    owner = {"user": memory.user, "agent": memory.agent, "workspace": memory.workspace}
    where: dict[str, str | int] = {
        "event": memory.event,
        "session": memory.session,
        "at": memory.at,
    }
    return link("/memories/event", owner, where)


def memory_from(fields: Mapping[str, str]) -> KeptMemory:
    """Return the memory that the fields of an `event_link` describe; it has no text."""
    user, agent, workspace, event, session, at = (
        fields.get(name, "") for name in (*OWNER_FIELDS, "event", "session", "at")
    )
    when = int(at) if at.isdecimal() and len(at) <= _MAX_TIME_DIGITS else 0
    return KeptMemory("", agent, user, workspace, session=session, at=when, event=event)


def link(path: str, *parts: Mapping[str, str | int]) -> str:
    """Return a path with a query string; a later field overrides an earlier one of its name."""
    fields: dict[str, str | int] = {}
    for part in parts:
        fields |= part
    return f"{path}?{urlencode(fields)}"
