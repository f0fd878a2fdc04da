"""Formats dead letters for people and programs; pure, and safe against hostile text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from memorybus.dead_letters.queue import LetterEvent, LocatedLetter
from memorybus.dead_letters.records import normalise_reason
from memorybus.text.display import count_text, iso
from rich.table import Table
from rich.text import Text

from memorybus_console.operations.dead_letters import count_by_key
from memorybus_console.views.events import PlacedEvent
from memorybus_console.views.render import add_row, grid
from memorybus_console.views.safe import json_text, one_line, visible

LetterGrouping = Literal["error", "key", "provider"]

REASON_WIDTH = 80
_COLUMNS = {
    "key": ("provider", "key", "events", "event", "type", "tries", "last_at", "error", "reason"),
    "error": ("error", "provider", "keys", "events", "first_at", "last_at", "reason"),
    "provider": ("provider", "keys", "events", "errors"),
}
_HEADS = {
    "last_at": "last refused",
    "first_at": "first refused",
    "error": "group",
    "event": "first event",
    "events": "waiting",
}


class LetterKey(TypedDict):
    """The first dead letter of a key, with how many events of the key wait."""

    provider: str
    partition: int
    key: str
    event: str
    type: str
    session: str
    error: str | None
    reason: str
    tries: int
    first_at: str | None
    last_at: str | None
    edited: bool
    events: int


class LetterError(TypedDict):
    """A kind of refusal: how many keys it blocks, and how many events wait in all."""

    error: str
    provider: str
    reason: str
    keys: int
    refused: int
    events: int
    first_at: str | None
    last_at: str | None


class LetterProvider(TypedDict):
    """A provider's dead letters."""

    provider: str
    keys: int
    events: int
    errors: int


class Letter(TypedDict):
    """One dead letter: why it was refused, and the event itself."""

    provider: str
    partition: int
    key: str
    event: str
    type: str
    session: str
    error: str | None
    reason: str
    tries: int
    first_at: str | None
    last_at: str | None
    edited: dict[str, Any] | None
    entry: str
    n: int
    at: str | None
    worker: str
    traceback: str
    published: PlacedEvent | None
    missing: str | None


def group_rows(group: LetterGrouping, letters: Sequence[LocatedLetter]) -> list[dict[str, Any]]:
    """Return dead letters grouped as ``memorybus dlq ls --json`` shows them."""
    make = {"key": _rows_by_key, "error": _rows_by_error, "provider": _rows_by_provider}
    return make[group](letters)


def _rows_by_key(letters: Sequence[LocatedLetter]) -> list[dict[str, Any]]:
    """Return a row for each key: its first letter, and how many events of the key wait."""
    counts = count_by_key(letters)
    firsts: dict[tuple[str, int, str], LocatedLetter] = {}
    for dead in letters:
        firsts.setdefault(dead.lane_and_key, dead)
    return [_letter_row(dead) | {"events": counts[under]} for under, dead in firsts.items()]


def _letter_row(dead: LocatedLetter) -> dict[str, Any]:
    letter = dead.stored.letter
    return {
        "provider": dead.provider,
        "partition": dead.partition,
        "key": letter.key,
        "event": letter.event_id,
        "type": letter.type,
        "session": letter.session,
        "error": dead.group or None,
        "reason": letter.reason,
        "tries": letter.attempts,
        "first_at": iso(letter.first_at or None),
        "last_at": iso(letter.last_at or None),
        "edited": dead.stored.amendment is not None and dead.stored.amendment.edited is not None,
    }


def _rows_by_error(letters: Sequence[LocatedLetter]) -> list[dict[str, Any]]:
    """Return a row for each kind of refusal: how many keys it blocks, how many events wait."""
    counts = count_by_key(letters)
    groups: dict[str, list[LocatedLetter]] = {}
    for dead in letters:
        if dead.group:
            groups.setdefault(dead.group, []).append(dead)
    return [_error_row(name, deads, counts) for name, deads in groups.items()]


def _error_row(
    name: str, deads: Sequence[LocatedLetter], counts: Mapping[tuple[str, int, str], int]
) -> dict[str, Any]:
    refused = [dead.stored.letter for dead in deads]
    keys = {dead.lane_and_key for dead in deads}
    return {
        "error": name,
        "provider": deads[0].provider,
        "reason": normalise_reason(refused[0].reason),
        "keys": len(keys),
        "refused": len(refused),
        "events": sum(counts[key] for key in keys),
        "first_at": iso(min(letter.first_at for letter in refused) or None),
        "last_at": iso(max(letter.last_at for letter in refused) or None),
    }


def _rows_by_provider(letters: Sequence[LocatedLetter]) -> list[dict[str, Any]]:
    names = dict.fromkeys(dead.provider for dead in letters)
    return [_provider_row(name, [d for d in letters if d.provider == name]) for name in names]


def _provider_row(name: str, letters: Sequence[LocatedLetter]) -> dict[str, Any]:
    return {
        "provider": name,
        "keys": len({dead.lane_and_key for dead in letters}),
        "events": len(letters),
        "errors": len({dead.group for dead in letters} - {""}),
    }


def table(group: LetterGrouping, found: Iterable[Mapping[str, Any]]) -> Table:
    """Return rows as a table."""
    columns = _COLUMNS[group]
    made = grid(*(_HEADS.get(name, name) for name in columns), texts=("reason",))
    for row in found:
        add_row(made, *(_cell(name, row[name]) for name in columns))
    return made


def _cell(name: str, value: Any) -> str:
    return one_line("-" if value is None else str(value), REASON_WIDTH if name == "reason" else 0)


def letter_json(dead: LocatedLetter, event: LetterEvent, shown: Any) -> dict[str, Any]:
    """Return one dead letter as ``memorybus dlq show --json`` prints it.

    Args:
        dead: the letter.
        event: the letter's event, or why it cannot be read.
        shown: the event as ``memorybus events ls --json`` shows it.
    """
    letter, amendment = dead.stored.letter, dead.stored.amendment
    return _letter_row(dead) | {
        "entry": letter.entry,
        "n": letter.n,
        "at": iso(letter.at),
        "worker": letter.worker,
        "traceback": letter.trace,
        "edited": None if amendment is None else amendment.edited,
        "published": None if event.event is None else shown,
        "missing": event.why or None,
    }


def letter_text(shown: Mapping[str, Any], waiting: int, first: str) -> Text:
    """Return one dead letter for people.

    Args:
        shown: the letter as `letter_json` has it.
        waiting: how many events of its key wait, including this one.
        first: the event that waits before all others of its key.
    """
    text = Text()
    for name in ("event", "type", "provider", "key", "session", "at", "reason", "error", "tries"):
        head = _HEADS[name] if name == "error" else name
        text.append(f"{head:<10}", style="bold").append(f"{_cell_whole(shown[name])}\n")
    text.append("refused   ", style="bold").append(f"{_refusal_text(shown, first)}\n")
    text.append("waiting   ", style="bold")
    text.append(f"{count_text(waiting, 'event')} of its key, itself included, in order\n")
    for title, value in (("edited", shown["edited"]), ("published", _published_fields(shown))):
        if value is not None:
            text.append(f"{title}\n", style="bold").append(f"{json_text(value)}\n")
    if shown["missing"]:
        text.append(f"{one_line(shown['missing'])}\n", style="yellow")
    return text.append(visible(shown["traceback"]), style="dim")


def _refusal_text(shown: Mapping[str, Any], first: str) -> str:
    if not shown["tries"]:
        return f"never tried: it waits behind {one_line(first)}"
    return f"first {shown['first_at'] or '-'}, last {shown['last_at'] or '-'}"


def _published_fields(shown: Mapping[str, Any]) -> Any:
    return None if shown["published"] is None else shown["published"]["event"]


def _cell_whole(value: Any) -> str:
    return one_line("-" if value is None else str(value))
