"""Formats events for people, each as one safe line or whole, and for ``--json``; pure."""

from collections.abc import Mapping
from typing import Any, TypedDict

import msgspec
from memorybus.events import (
    AnyEvent,
    CanarySent,
    ContextCompressing,
    DeadLetterResolved,
    Delegated,
    Envelope,
    MemoryWritten,
    Omitted,
    OperatorActed,
    Position,
    SessionEnded,
    SessionStarted,
    SessionSwitched,
    ToolCalled,
    TurnCompleted,
    TurnStarted,
    UnknownEvent,
)
from memorybus.log.entry import LoggedEvent
from memorybus.text.display import event_name, iso
from rich.text import Text

from memorybus_console.views.safe import json_text, one_line

SUMMARY_WIDTH = 96
_ARROWS = {"add": "+", "replace": "±", "remove": "−"}
_COLOURS = {
    "SessionStarted": "green",
    "SessionSwitched": "magenta",
    "MemoryWritten": "yellow",
    "ContextCompressing": "blue",
    "Delegated": "cyan",
    "SessionEnded": "red",
}


class PlacedEvent(TypedDict):
    """An event with its position; `event` has the fields of its type."""

    position: Position
    id: str
    key: str
    type: str
    at: str | None
    session: dict[str, Any]
    scope: dict[str, Any]
    event: dict[str, Any]


def summary(event: AnyEvent, width: int = SUMMARY_WIDTH) -> str:
    """Return what happened in one safe line of at most `width` characters."""
    return one_line(_describe(event), width)


def _describe(event: AnyEvent) -> str:  # noqa: C901, PLR0911  one flat dispatch
    match event:
        case SessionStarted(title=title, parent=parent, reason=reason):
            return " ".join(filter(None, (title or reason, parent and f"(from {parent})")))
        case TurnStarted(message=message):
            return message
        case TurnCompleted():
            return _describe_turn(event)
        case MemoryWritten():
            return _describe_write(event)
        case SessionSwitched(new_id=new_id, parent=parent, reason=reason, retracted=gone):
            back = f", {len(gone)} taken back" if gone else ""
            return f"{reason}: {parent} → {new_id}{back}"
        case ContextCompressing(messages=messages, compression_count=count):
            return f"compression {count}, {len(messages)} messages leave the window"
        case Delegated(task=task, result=result):
            return f"{task} → {result}"
        case SessionEnded(reason=reason):
            return reason or "over"
        case ToolCalled(provider=provider, tool=tool):
            return f"{provider}: {tool}"
        case DeadLetterResolved(provider=provider, action=action, event_id=event_id, reason=why):
            return f"{provider}: {action} {event_id[:12]}: {why}"
        case CanarySent() | OperatorActed() | UnknownEvent() | Omitted():
            return _describe_own(event)


def _describe_own(event: CanarySent | OperatorActed | UnknownEvent | Omitted) -> str:
    match event:
        case CanarySent():
            return "memorybus doctor checks whether events come through"
        case OperatorActed():
            return _describe_act(event)
        case UnknownEvent(wire_version=version):
            return f"unknown to this release (version {version}), kept as it is"
        case Omitted(why=why):
            return f"left out: {why}"


def _describe_act(event: OperatorActed) -> str:
    about = " ".join(event.about.values())
    failed = f"; it failed: {event.failed}" if event.failed else ""
    return f"{event.operator}: {event.act} {about}: {event.reason}{failed}"


def _describe_turn(event: TurnCompleted) -> str:
    sides = ((event.user_name or "user", event.user), (event.assistant_name, event.assistant))
    return " ⏎ ".join(f"{name or 'assistant'}: {text}" for name, text in sides if text)


def _describe_write(event: MemoryWritten) -> str:
    old = f"“{event.old_text}” " if event.old_text else ""
    return f"{event.store} {_ARROWS[event.action]} {old}{event.content}".rstrip()


def event_line(envelope: Envelope) -> Text:
    """Return an event as one line: time, type, session, what happened."""
    name = event_name(envelope.event)
    return Text.assemble(
        (f"{iso(envelope.at) or '-':<24} ", "dim"),
        (f"{one_line(name, 18):<18} ", _COLOURS.get(name, "")),
        (f"{one_line(envelope.session.id, 28):<28} ", "dim"),
        summary(envelope.event),
    )


def event_head(event: AnyEvent, width: int) -> tuple[str, str]:
    """Return an event's type, escaped and cut to a width, and its colour."""
    name = event_name(event)
    return one_line(name, width), _COLOURS.get(name, "")


def event_text(envelope: Envelope, position: Position, lies: str, said: Mapping[str, Any]) -> Text:
    """Return one event with all its fields, for people.

    Args:
        envelope: the event with its session and scope.
        position: its position in the log.
        lies: where it is stored, in words.
        said: its own fields, as ``--json`` shows them.
    """
    session, scope = envelope.session, envelope.scope
    rows = {
        "event": envelope.id,
        "type": event_name(envelope.event),
        "at": iso(envelope.at),
        "session": session.id if session.id == session.root else f"{session.id} of {session.root}",
        "agent": scope.agent,
        "user": scope.user,
        "workspace": scope.workspace,
        "platform": scope.platform,
        "position": f"partition {position.partition}, number {position.n}",
        "lies": lies,
    }
    text = Text()
    for name, value in rows.items():
        text.append(f"{name:<10}", style="bold").append(f"{one_line(value or '-')}\n")
    return text.append(json_text(said))


def event_json(event: LoggedEvent) -> dict[str, Any]:
    """Return an event as ``--json`` shows it; the bytes of unknown events are shown as hex."""
    envelope = event.envelope
    return {
        "position": msgspec.to_builtins(event.position),
        "id": envelope.id,
        "key": envelope.key,
        "type": event_name(envelope.event),
        "at": iso(envelope.at),
        "session": msgspec.to_builtins(envelope.session),
        "scope": msgspec.to_builtins(envelope.scope),
        "event": fields_json(envelope.event),
    }


def fields_json(event: AnyEvent) -> dict[str, Any]:
    """Return an event's own fields as ``--json`` shows them."""
    try:
        said: dict[str, Any] = msgspec.to_builtins(event)
    except TypeError:  # JSON cannot hold the values, which only damaged data has
        return {"type": event_name(event), "raw": msgspec.msgpack.encode(event).hex()}
    return said | {"raw": event.raw.hex()} if isinstance(event, UnknownEvent) else said
