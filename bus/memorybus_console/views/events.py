"""Formats events for people, each as one safe line or whole, and for ``--json``; pure."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from memorybus.events import (
    AnyEvent,
    CanarySent,
    ContextCompressing,
    DeadLetterResolved,
    Delegated,
    Derived,
    Envelope,
    MemoryCurated,
    MemoryWritten,
    Omitted,
    OperatorActed,
    Position,
    Recalled,
    Scope,
    SessionEnded,
    SessionRef,
    SessionStarted,
    SessionSwitched,
    ShownMemories,
    ToolCalled,
    TurnCompleted,
    TurnStarted,
    UnknownEvent,
)
from memorybus.history.history import Whereabouts
from memorybus.log.entry import LoggedEvent
from memorybus.text.display import event_name, iso, one_line
from rich.text import Text

from memorybus_console.operations.events.search import SearchWords
from memorybus_console.operations.events.story import EventStory, Fate
from memorybus_console.views.presenter import block
from memorybus_console.views.render import json_text

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
_OUTCOME_COLOURS = {
    "applied": "green",
    "waiting": "yellow",
    "parked": "red",
    "discarded": "magenta",
}


class PlacedEvent(msgspec.Struct, frozen=True):
    """An event with its position; `event` has the fields of its type."""

    position: Position
    id: str
    key: str
    type: str
    at: str | None
    session: SessionRef
    scope: Scope
    event: dict[str, Any]


class EventWhole(PlacedEvent, frozen=True):
    """An event, where it is stored, and its outcome at each instance."""

    location: Whereabouts
    outcomes: list[Fate]


class EventsFound(msgspec.Struct, frozen=True):
    """A page of a search; `next` is the value of --before for the next page."""

    events: list[PlacedEvent]
    next: str | None
    checked: int
    back_to: str | None
    unread: list[str]


def placed(event: LoggedEvent) -> PlacedEvent:
    """Return an event as ``--json`` shows it."""
    envelope = event.envelope
    return PlacedEvent(
        position=event.position,
        id=envelope.id,
        key=envelope.key,
        type=event_name(envelope.event),
        at=iso(envelope.at),
        session=envelope.session,
        scope=envelope.scope,
        event=fields_json(envelope.event),
    )


def fields_json(event: AnyEvent) -> dict[str, Any]:
    """Return an event's own fields; the bytes of unknown events are shown as hex."""
    try:
        fields: dict[str, Any] = msgspec.to_builtins(event)
    except TypeError:  # JSON cannot hold the values, which only damaged data has
        return {"type": event_name(event), "raw": msgspec.msgpack.encode(event).hex()}
    return fields | {"raw": event.raw.hex()} if isinstance(event, UnknownEvent) else fields


def whole(story: EventStory) -> EventWhole:
    """Return an event with where it is stored and its outcomes."""
    event = msgspec.structs.asdict(placed(story.event))
    return EventWhole(**event, location=story.where, outcomes=story.fates)


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
        case Derived(kind=kind, text=text, deriver=deriver):
            return f"{kind} by {deriver}: {text}"
        case DeadLetterResolved(provider=provider, action=action, event_id=event_id, reason=why):
            return f"{provider}: {action} {event_id[:12]}: {why}"
        case (
            MemoryCurated()
            | CanarySent()
            | OperatorActed()
            | Recalled()
            | UnknownEvent()
            | Omitted()
        ):
            return _describe_own(event)


def _describe_own(
    event: MemoryCurated | CanarySent | OperatorActed | Recalled | UnknownEvent | Omitted,
) -> str:
    match event:
        case MemoryCurated(memory=memory, before=before, after=after, reason=reason):
            return f"{memory}: {before} → {after}, {reason}"
        case CanarySent():
            return "memorybus doctor checks whether events come through"
        case OperatorActed():
            return _describe_act(event)
        case Recalled(memories=memories):
            return "given to a prompt: " + ", ".join(map(describe_shown, memories))
        case UnknownEvent(wire_version=version):
            return f"unknown to this release (version {version}), kept as it is"
        case Omitted(why=why):
            return f"left out: {why}"


def describe_shown(memories: ShownMemories) -> str:
    """Return in words how many memories of a provider a prompt was given, and how they came."""
    return f"{len(memories.events)} of {memories.provider} ({memories.outcome})"


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


def event_parts(event: EventWhole) -> Iterator[Text]:
    """Yield one event with all its fields, where it is stored, and its outcomes."""
    session, scope = event.session, event.scope
    rows = {
        "event": event.id,
        "type": event.type,
        "at": event.at,
        "session": session.id if session.id == session.root else f"{session.id} of {session.root}",
        "agent": scope.agent,
        "user": scope.user,
        "workspace": scope.workspace,
        "platform": scope.platform,
        "position": f"partition {event.position.partition}, number {event.position.n}",
        "stored": describe_location(event.location),
    }
    yield block({title: Text(one_line(text or "-")) for title, text in rows.items()})
    yield Text(json_text(event.event))
    yield fates_text(event.outcomes)


def found_lines(envelope: Envelope, words: SearchWords, width: int) -> Text:
    """Return an event that was found as two lines: id, time and type; session, user and text.

    Args:
        words: the words of the search; the text is shown from near the first one on.
        width: columns of the terminal; the id is never cut.
    """
    at = (iso(envelope.at) or "-")[:19].replace("T", " ")
    excerpt = words.excerpt(envelope.event)
    where = one_line(" ".join(filter(None, (envelope.session.id, envelope.scope.user))), 36)
    room = max(20, width - len(where) - 4)
    return Text.assemble(
        (envelope.id, "bold"),
        (f"  {at}  ", "dim"),
        event_head(envelope.event, max(8, width - 55)),
        (f"\n  {where}  ", "dim"),
        one_line(excerpt, room) if excerpt else summary(envelope.event, room),
    )


def describe_location(where: Whereabouts) -> str:
    """Return in words where an event is stored."""
    sealed = f"sealed in {where.segment}" if where.segment else "sealed in the archive"
    parts = ("in the log" if where.in_log else "", sealed if where.sealed else "")
    return " and ".join(filter(None, parts)) or "nowhere any more"


def fates_text(fates: Iterable[Fate]) -> Text:
    """Return an event's outcomes, a line for each instance."""
    text = Text("outcome by provider", "bold")
    for fate in fates:
        name = f"{fate.instance} ({fate.role})" if fate.role else fate.instance
        text.append(f"\n{one_line(name):<20} ", "default")
        text.append(f"{fate.outcome:<10} ", _OUTCOME_COLOURS.get(fate.outcome, "dim"))
        text.append(one_line(describe_fate(fate)).rstrip(), "default")
    return text


def describe_fate(fate: Fate) -> str:
    """Return the details of an outcome in words; "" if there are none."""
    parts = [fate.why]
    if fate.outcome == "waiting":
        parts.insert(0, f"{fate.before:,} before it" if fate.before else "next")
    if fate.outcome == "parked":
        tries = f"{fate.tries} {'try' if fate.tries == 1 else 'tries'}, " if fate.tries else ""
        parts.append(f"{tries}{fate.behind} behind")
    return "; ".join(filter(None, parts))
