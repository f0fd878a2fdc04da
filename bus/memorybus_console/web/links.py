"""Links from one view to another, and the rows of events that carry them; pure."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from memorybus.health.finding import Code, Finding
from memorybus.history.backward import BackwardMark
from memorybus.log.entry import LoggedEvent
from memorybus.recall.model import RecallRequest
from memorybus.text.display import event_name, iso, one_line

from memorybus_console.operations.events.search import SearchWords, format_mark
from memorybus_console.operations.memories.browsing import KeptMemory
from memorybus_console.views.events import summary

OWNER_FIELDS: Final = ("user", "agent", "workspace")
"""The fields that name the owner of memories. A missing or empty field stands for any owner; but
a workspace that is given and empty stands for memories without a workspace."""

_MAX_TIME_DIGITS = 15  # the most digits of a time in milliseconds
_MAX_TEXT_CHARS = 300  # the most characters of an event's text in a row
_MAX_TYPE_CHARS = 24  # the most characters of a type; only an unknown type is longer


def number_of(fields: Mapping[str, str], name: str, default: int = 0, digits: int = 9) -> int:
    """Return a field's number; the default if it is none, or has more than `digits` digits."""
    text = fields.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= digits else default


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
    user, agent, workspace, event, session = (
        fields.get(name, "") for name in (*OWNER_FIELDS, "event", "session")
    )
    at = number_of(fields, "at", digits=_MAX_TIME_DIGITS)
    return KeptMemory("", agent, user, workspace, session=session, at=at, event=event)


def link(path: str, *parts: Mapping[str, str | int]) -> str:
    """Return a path with a query string; a later field overrides an earlier one of its name."""
    fields: dict[str, str | int] = {}
    for part in parts:
        fields |= part
    return f"{path}?{urlencode(fields)}"


def place_of(event: LoggedEvent) -> str:
    """Return an event's position as links write it."""
    return format_mark(BackwardMark(event.position.partition, event.position.entry)) or ""


def event_row(event: LoggedEvent, words: SearchWords) -> dict[str, Any]:
    """Return a table row of an event, with the part of its text near the searched words."""
    envelope = event.envelope
    excerpt = words.excerpt(envelope.event)
    return {
        "place": place_of(event),
        "id": envelope.id,
        "at": iso(envelope.at),
        "type": one_line(event_name(envelope.event), _MAX_TYPE_CHARS),
        "session": envelope.session.id,
        "user": envelope.scope.user,
        "summary": one_line(excerpt, _MAX_TEXT_CHARS)
        if excerpt
        else summary(envelope.event, _MAX_TEXT_CHARS),
    }


class FindingView(NamedTuple):
    """A link: its path, and its text."""

    path: str
    label: str


_VIEWS: Final[dict[Code, FindingView]] = {
    "failing": FindingView("/providers/{name}#retry-now", "Retry now"),
    "paused": FindingView("/providers/{name}#resume", "Resume"),
    "lane_halted": FindingView("/providers/{name}#lanes", "Lanes"),
    "behind": FindingView("/providers/{name}#lanes", "Lanes"),
    "hot_lane": FindingView("/providers/{name}#lanes", "Lanes"),
    "unserved": FindingView("/providers/{name}#lanes", "Lanes"),
    "dead_letters": FindingView("/dead?provider={name}", "Dead letters"),
    "recalls": FindingView("/workers#jobs", "Recall jobs"),
    "no_worker": FindingView("/workers", "Workers"),
    "worker_gone": FindingView("/workers", "Workers"),
    "versions": FindingView("/workers", "Workers"),
    "model": FindingView("/workers", "Workers"),
    "spool": FindingView("/workers#spools", "Spools"),
    "archive": FindingView("/history", "History"),
    "archive_ahead": FindingView("/history", "History"),
    "data_loss": FindingView("/history", "History"),
}
"""Findings about Redis itself have no view: what they need is done at the server."""


def finding_view(finding: Finding) -> FindingView | None:
    """Return the link to a finding's view; None if no view has more about it."""
    view = _VIEWS.get(finding.code)
    if view is None:
        return None
    name = quote(finding.subject.partition(":")[0], safe="")
    return view._replace(path=view.path.format(name=name))
