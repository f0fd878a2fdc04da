"""Events, lanes and checks as people read them; pure, and safe against hostile text."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import convert
from rich.table import Table
from rich.text import Text

from memorybus.events import (
    AnyEvent,
    ContextCompressing,
    DeadLetterResolved,
    Delegated,
    Envelope,
    MemoryWritten,
    Omitted,
    SessionEnded,
    SessionStarted,
    SessionSwitched,
    ToolCalled,
    TurnCompleted,
    TurnStarted,
    UnknownEvent,
)
from memorybus.health.sealing import ArchiveStatus, told_archive
from memorybus.log.forecast import Disk, Memory, told, told_disk
from memorybus.surfaces.views.safe import one_line, visible
from memorybus.text.display import event_name
from memorybus.text.times import iso

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


def summary(event: AnyEvent, width: int = SUMMARY_WIDTH) -> str:
    """Return what happened in one safe line of at most `width` characters."""
    return one_line(_told(event), width)


def _told(event: AnyEvent) -> str:  # noqa: C901, PLR0911  one flat dispatch
    match event:
        case SessionStarted(title=title, parent=parent, reason=reason):
            return " ".join(filter(None, (title or reason, parent and f"(from {parent})")))
        case TurnStarted(message=message):
            return message
        case TurnCompleted():
            return _turn(event)
        case MemoryWritten():
            return _write(event)
        case SessionSwitched(new_id=new_id, parent=parent, reason=reason):
            return f"{reason}: {parent} → {new_id}"
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
        case UnknownEvent(wire_version=version):
            return f"unknown to this release (version {version}), kept as it is"
        case Omitted(why=why):
            return f"left out: {why}"


def _turn(event: TurnCompleted) -> str:
    sides = ((event.user_name or "user", event.user), (event.assistant_name, event.assistant))
    return " ⏎ ".join(f"{name or 'assistant'}: {text}" for name, text in sides if text)


def _write(event: MemoryWritten) -> str:
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


def status_tables(status: Mapping[str, Any]) -> list[Table | Text]:
    """Return the monitor's read model as lines and tables.

    Args:
        status: exactly what ``memorybus status --json`` prints.
    """
    return [
        *map(_alarm, status["alarms"]),
        _head(status),
        _providers(status["providers"]),
        *_copies(status.get("copies", ())),
        *map(_failing, (one for one in _instances(status) if one["failing"])),
        *map(_served_by, (one for one in status["providers"] if one.get("live"))),
        *map(_paused, (one for one in _instances(status) if one.get("paused"))),
        _workers(status),
        _jobs(status),
    ]


def _alarm(alarm: Mapping[str, Any]) -> Text:
    """Return what is wrong as a coloured line, with its remedy below."""
    critical = alarm["severity"] == "critical"
    kind = "DATA LOSS" if alarm["code"] == "data_loss" else str(alarm["severity"]).upper()
    return Text.assemble(
        (f"{visible(kind)}: {visible(alarm['text'])}", "bold red" if critical else "yellow"),
        (f"\n    → {visible(alarm['remedy'])}", "yellow"),
    )


def _head(status: Mapping[str, Any]) -> Text:
    redis, spool = status["redis"], status["spool"]
    oldest = f", the oldest since {spool['oldest_at']}" if spool["oldest_at"] else ""
    return Text(
        visible(
            f"Redis {redis['version']} at {redis['url']} ({redis['durability']}), "
            f"{status['partitions']} partitions\n"
            f"Spool: {spool['events']} events to send, {spool['bytes']} bytes{oldest}\n"
            f"Memory: {told(convert(status['memory'], Memory))}{_disk(status['disk'])}\n"
            f"Archive: {told_archive(convert(status['archive'], ArchiveStatus))}"
        )
    )


def _disk(disk: Mapping[str, Any] | None) -> str:
    return "" if disk is None else f"\nDisk: {told_disk(convert(disk, Disk))}"


def _providers(providers: Sequence[Mapping[str, Any]]) -> Table:
    table = grid(
        "provider", "applied", "backlog", "oldest unapplied", "parked", "dead letters", "lanes"
    )
    for one in providers:
        table.add_row(
            Text(one_line(one["name"])),
            str(one["applied"]),
            Text(str(one["backlog"]), style="yellow" if one["backlog"] else ""),
            str(one["oldest_unapplied_at"] or "-"),
            Text(str(one["parked_keys"]), style="red" if one["parked_keys"] else ""),
            Text(str(one["dead_letters"]), style="red" if one["dead_letters"] else ""),
            Text(
                f"{one['lanes_owned']}/{one['lanes']}",
                style="" if one["lanes_owned"] else "yellow",
            ),
        )
    return table


def _instances(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*status["providers"], *status.get("copies", ())]


def _copies(copies: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return the instances that a replay or a rebuild fills, if there are any."""
    if not copies:
        return []
    table = grid("copy", "of", "to do", "parked", "lanes")
    for one in copies:
        lanes = f"{one['lanes_owned']}/{one['lanes']}"
        to_do = "-" if _is_kept(one) else one["backlog"]  # a rollback brings it up to date
        cells = (one["name"], one["copy_of"], to_do, one["parked_keys"], lanes)
        table.add_row(*(Text(one_line(str(cell))) for cell in cells))
    return [table]


def _is_kept(provider: Mapping[str, Any]) -> bool:
    """Say whether an instance stands still because another one took over."""
    return bool(provider["kept"])


def _served_by(provider: Mapping[str, Any]) -> Text:
    """Return which generation serves a provider."""
    return Text(
        f"{one_line(provider['name'])} is served by {one_line(provider['live'])}", style="dim"
    )


def _paused(provider: Mapping[str, Any]) -> Text:
    """Return why a provider's lanes stand still."""
    name = one_line(provider.get("live") or provider["name"])
    if _is_kept(provider):
        said = f"{name} stands still, {one_line(provider['paused'], 300)}"
        return Text(said, style="dim")
    said = f"{name} is paused: {one_line(provider['paused'], 300)}"
    return Text(f"{said}\n    → to go on: memorybus provider resume {name}", "yellow")


def _failing(provider: Mapping[str, Any]) -> Text:
    """Return why a provider's lanes wait."""
    said = f"{one_line(provider['name'])} waits: {one_line(provider['failing'], 300)}"
    return Text(
        f"{said}\n    → nothing is parked; it goes on by itself once calls succeed", "yellow"
    )


def _workers(status: Mapping[str, Any]) -> Table | Text:
    if not status["workers"]:
        return Text("No worker is alive; start one: memorybus up", style="yellow")
    table = grid("worker", "host", "pid", "lanes", "heartbeat")
    for one in status["workers"]:
        cells = (one["id"], one["host"], one["pid"], one["lanes"], one["heartbeat_at"])
        table.add_row(*(Text(one_line(str(cell))) for cell in cells))
    return table


def _jobs(status: Mapping[str, Any]) -> Table:
    table = grid("queue", "queued", "oldest", "started", "failed", "skipped", "last error")
    for one in status["jobs"]:
        table.add_row(
            Text(one_line(one["queue"])),
            str(one["queued"]),
            str(one["oldest_at"] or "-"),
            str(one["started"]),
            Text(str(one["failed"]), style="red" if one["failing"] else ""),
            Text(f"{one['skipped']}{' (paused)' if one['paused'] else ''}"),
            Text(_last_error(one)),
        )
    return table


def _last_error(jobs: Mapping[str, Any]) -> str:
    if not jobs["error"]:
        return "-"
    return f"{jobs['failed_at']} {one_line(jobs['error'])}"


def grid(*columns: str) -> Table:
    """Return an empty table in the house style: no frame, nothing cut."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
