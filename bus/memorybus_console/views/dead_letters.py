"""Dead letters as commands and the page show them: one, or groups by key, error or provider."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from memorybus.dead_letters.queue import LetterEvent, LocatedLetter
from memorybus.dead_letters.records import normalise_reason
from memorybus.text.display import count_text, iso
from rich.console import RenderableType
from rich.text import Text

from memorybus_console.operations.dead_letters import count_by_key
from memorybus_console.result import HIDDEN, Column
from memorybus_console.views.events import PlacedEvent, placed
from memorybus_console.views.presenter import block, parts_of
from memorybus_console.views.render import json_text, line

_REASON = Column(wraps=True, most=80)


class RefusedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a provider refused, or that waits behind one; times are ISO 8601."""

    provider: str
    partition: Annotated[int, HIDDEN]
    key: str
    event: str
    type: str
    session: Annotated[str, HIDDEN]
    tries: int
    first_at: Annotated[str | None, HIDDEN]
    last_at: Annotated[str | None, Column(title="last refused")]
    error: Annotated[str | None, Column(title="group")]


class LetterKey(RefusedEvent, frozen=True, kw_only=True):
    """The first dead letter of a key, with how many events of the key wait."""

    reason: Annotated[str, _REASON]
    edited: Annotated[bool, HIDDEN]
    events: Annotated[int, Column(title="waiting")]


class LetterError(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of refusal: how many keys it blocks, and how many events wait in all."""

    error: Annotated[str, Column(title="group")]
    provider: str
    keys: int
    refused: Annotated[int, HIDDEN]
    events: Annotated[int, Column(title="waiting")]
    first_at: Annotated[str | None, Column(title="first refused")]
    last_at: Annotated[str | None, Column(title="last refused")]
    reason: Annotated[str, _REASON]


class LetterProvider(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's dead letters."""

    provider: str
    keys: int
    events: Annotated[int, Column(title="waiting")]
    errors: int


class Letter(RefusedEvent, frozen=True, kw_only=True):
    """One dead letter: why it was refused, and the event itself."""

    reason: str
    session: str
    at: str | None
    edited: Annotated[dict[str, Any] | None, HIDDEN]
    entry: Annotated[str, HIDDEN]
    n: Annotated[int, HIDDEN]
    worker: Annotated[str, HIDDEN]
    traceback: Annotated[str, HIDDEN]
    published: Annotated[PlacedEvent | None, HIDDEN]
    missing: Annotated[str | None, HIDDEN]


def letters_by_key(letters: Sequence[LocatedLetter]) -> list[LetterKey]:
    """Return each key's first letter, and how many events of the key wait."""
    return [
        LetterKey(**_refused(dead), edited=_edited(dead) is not None, events=waiting)
        for dead, waiting in first_letters(letters)
    ]


def first_letters(
    letters: Sequence[LocatedLetter], error: str = ""
) -> list[tuple[LocatedLetter, int]]:
    """Return each key's first letter, of one error group or any, and how many of the key wait."""
    counts = count_by_key(letters)
    firsts: dict[tuple[str, int, str], LocatedLetter] = {}
    for dead in letters:
        if error in ("", dead.group):
            firsts.setdefault(dead.lane_and_key, dead)
    return [(dead, counts[place]) for place, dead in firsts.items()]


def _refused(dead: LocatedLetter) -> dict[str, Any]:
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
    }


def _edited(dead: LocatedLetter) -> dict[str, Any] | None:
    return None if dead.stored.amendment is None else dead.stored.amendment.edited


def letters_by_error(letters: Sequence[LocatedLetter]) -> list[LetterError]:
    """Return each kind of refusal: how many keys it blocks, how many events wait."""
    counts = count_by_key(letters)
    groups: dict[str, list[LocatedLetter]] = {}
    for dead in letters:
        if dead.group:
            groups.setdefault(dead.group, []).append(dead)
    return [_error_of(group, counts) for group in groups.values()]


def _error_of(
    group: Sequence[LocatedLetter], counts: Mapping[tuple[str, int, str], int]
) -> LetterError:
    letters = [dead.stored.letter for dead in group]
    keys = {dead.lane_and_key for dead in group}
    return LetterError(
        error=group[0].group,
        provider=group[0].provider,
        reason=normalise_reason(letters[0].reason),
        keys=len(keys),
        refused=len(letters),
        events=sum(counts[key] for key in keys),
        first_at=iso(min(letter.first_at for letter in letters) or None),
        last_at=iso(max(letter.last_at for letter in letters) or None),
    )


def letters_by_provider(letters: Sequence[LocatedLetter]) -> list[LetterProvider]:
    groups: dict[str, list[LocatedLetter]] = {}
    for dead in letters:
        groups.setdefault(dead.provider, []).append(dead)
    return [
        LetterProvider(
            provider=name,
            keys=len({dead.lane_and_key for dead in group}),
            events=len(group),
            errors=len({dead.group for dead in group} - {""}),
        )
        for name, group in groups.items()
    ]


def letter_of(dead: LocatedLetter, event: LetterEvent) -> Letter:
    """Return one dead letter, with its event or why that cannot be read."""
    letter = dead.stored.letter
    return Letter(
        **_refused(dead),
        entry=letter.entry,
        n=letter.n,
        at=iso(letter.at),
        worker=letter.worker,
        traceback=letter.trace,
        edited=_edited(dead),
        published=None if event.event is None else placed(event.event),
        missing=event.why or None,
    )


def letter_parts(letter: Letter, waiting: int, first: str) -> Iterator[RenderableType]:
    """Yield one dead letter for people.

    Args:
        first: the event that waits before all others of its key.
    """
    yield from parts_of(letter)
    tried = f"first {letter.first_at or '-'}, last {letter.last_at or '-'}"
    refused = tried if letter.tries else f"never tried: it waits behind {first}"
    count = f"{count_text(waiting, 'event')} of its key, itself included, in order"
    yield block({"refused": line(refused), "waiting": line(count)})
    published = letter.published and letter.published.event
    for title, fields in (("edited", letter.edited), ("published", published)):
        if fields is not None:
            yield Text.assemble((f"{title}\n", "bold"), json_text(fields))
    if letter.missing:
        yield line(letter.missing, "yellow")
    if letter.traceback:
        yield line(letter.traceback, "dim")
