"""The rows of the tables, with hostile text escaped; pure."""

from collections.abc import Iterable, Sequence

import msgspec
from memorybus.dead_letters.queue import LocatedLetter
from memorybus.health.status import ProviderStatus
from memorybus.health.verdict import BusState
from memorybus.log.entry import LoggedEvent
from memorybus.redis.keys import lane_name
from memorybus.registry.lanes import LaneState
from memorybus.text.display import iso
from rich.text import Text

from memorybus_console.views import dead_letters
from memorybus_console.views.events import event_head, summary
from memorybus_console.views.figures import ago, count, duration
from memorybus_console.views.render import cell
from memorybus_console.views.safe import one_line

PROVIDERS = (
    "provider",
    "state",
    "backlog",
    "events/s",
    "ETA",
    "age",
    "refused",
    "behind",
    "lanes",
    "applied",
)
LANES = ("provider", "lane", "state", "backlog", "applied", "of", "refused", "behind")
LETTERS = ("provider", "waiting", "tries", "group", "type", "reason", "key")
ERRORS = ("provider", "keys", "waiting", "group", "reason")
EVENTS = ("time", "type", "session", "what")

_NAME, _SESSION, _TYPE, _TEXT = 16, 14, 16, 200
"""The most characters of each column; the commands show the whole text."""


class TableRow(msgspec.Struct, frozen=True):
    """One line of a table.

    Attributes:
        provider: the provider that the row shows; "" if it shows none.
        name: what the row shows of the provider: a lane, a dead letter's key or error; an event's
            id. Actions and the cursor find the row by both.
        cells: the cells as they are shown.
    """

    provider: str
    name: str
    cells: tuple[Text, ...]

    @property
    def key(self) -> tuple[str, str]:
        """What distinguishes this row from others of its table."""
        return self.provider, self.name

    def contains(self, words: str) -> bool:
        """Say whether the cells contain a text, in upper or lower case."""
        return words.lower() in " ".join(one.plain for one in self.cells).lower()


def provider_rows(bus: BusState) -> list[TableRow]:
    """Return a row for each provider."""
    found = bus.status.providers if bus.status else []
    return [TableRow(one.name, "", _provider(one, bus.at_ms)) for one in found]


def lane_rows(bus: BusState, only: str = "") -> list[TableRow]:
    """Return a row for each lane of the serving instances, or of one provider's.

    The lanes with the largest backlog come first.
    """
    found = bus.status.providers if bus.status else []
    rows = [
        (lane, one.name, partition)
        for one in found
        if not only or one.name == only
        for partition, lane in enumerate(bus.lanes.get(one.live or one.name, ()))
    ]
    rows.sort(key=lambda row: -row[0].backlog)
    return [TableRow(name, lane_name(part), _lane(lane, name, part)) for lane, name, part in rows]


def letter_rows(letters: Sequence[LocatedLetter]) -> list[TableRow]:
    """Return a row for each key that waits behind a dead letter."""
    return [
        TableRow(
            one["provider"],
            one["key"],
            (
                _short(one["provider"], _NAME),
                _number(one["events"]),
                _number(one["tries"]),
                cell(one["error"] or ""),
                _short(one["type"], _TYPE),
                _short(one["reason"], _TEXT),
                cell(one["key"]),
            ),
        )
        for one in dead_letters.group_rows("key", letters)
    ]


def error_rows(letters: Sequence[LocatedLetter]) -> list[TableRow]:
    """Return a row for each kind of refusal."""
    return [
        TableRow(
            one["provider"],
            one["error"],
            (
                _short(one["provider"], _NAME),
                _number(one["keys"]),
                _number(one["events"]),
                cell(one["error"]),
                _short(one["reason"], _TEXT),
            ),
        )
        for one in dead_letters.group_rows("error", letters)
    ]


def event_rows(events: Iterable[LoggedEvent]) -> list[TableRow]:
    """Return a row for each event, the newest first."""
    return [_event(one) for one in reversed(list(events))]


def _provider(one: ProviderStatus, now_ms: int) -> tuple[Text, ...]:
    return (
        _short(one.name, _NAME),
        _state(one),
        _number(one.backlog, "yellow" if one.backlog else ""),
        _number(one.rate),
        _right(duration(one.seconds_left)),
        _right(ago(one.oldest_unapplied_at, now_ms)),
        _number(one.refused, "bold red" if one.refused else ""),
        _number(one.waiting_behind, "bold red" if one.waiting_behind else ""),
        _right(f"{one.lanes_owned}/{one.lanes}", "" if one.lanes_owned else "yellow"),
        _number(one.applied),
    )


def _state(one: ProviderStatus) -> Text:
    """Return a provider's state in one word; the findings say more."""
    if one.paused:
        return Text("paused", "yellow")
    if one.failing:
        return Text("failing", "bold red")
    if not one.lanes_owned:
        return Text("unserved", "bold red")
    if one.parked_keys:
        return Text("parked", "bold red")
    return Text("behind", "yellow") if one.backlog else Text("ok", "green")


def _lane(lane: LaneState, name: str, partition: int) -> tuple[Text, ...]:
    return (
        _short(name, _NAME),
        cell(lane_name(partition)),
        _lane_state(lane),
        _number(lane.backlog, "yellow" if lane.backlog else ""),
        _number(lane.n),
        _number(lane.head),
        _number(lane.refused, "bold red" if lane.refused else ""),
        _number(lane.waiting_behind, "bold red" if lane.waiting_behind else ""),
    )


def _lane_state(lane: LaneState) -> Text:
    if lane.halted:
        return Text("halted", "bold red")
    return Text("owned", "green") if lane.owned else Text("no owner", "yellow")


def _event(event: LoggedEvent) -> TableRow:
    envelope = event.envelope
    at = (iso(envelope.at) or "-")[11:19]
    return TableRow(
        "",
        envelope.id,
        (
            Text(at, "dim"),
            Text(*event_head(envelope.event, _TYPE)),
            _short(envelope.session.id, _SESSION),
            _short(summary(envelope.event), _TEXT),
        ),
    )


def _short(text: str, width: int) -> Text:
    return cell(one_line(text, width))


def _number(value: float | None, style: str = "") -> Text:
    return _right(count(value), style)


def _right(text: str, style: str = "") -> Text:
    return Text(text, style=style, justify="right")
