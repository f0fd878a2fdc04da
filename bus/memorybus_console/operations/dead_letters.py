"""An operator's actions on dead letters (G6): a plan, requests to lanes' owners, the outcome."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal

import msgspec
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters, LaneId, LocatedLetter
from memorybus.dead_letters.records import LetterRequest, edit_event, split_items
from memorybus.errors import ConfigError, EventTooLarge, InvalidEvent, MemoryBusError
from memorybus.ids import NewId

OperatorAction = Literal["retry", "discard", "edit"]


class NoSuchLetter(MemoryBusError):
    """The selection finds no dead letter, or more than one event."""


@dataclass(frozen=True, kw_only=True)
class LetterSelection:
    """Which dead letters an operator selects; exactly one of the first four fields is given."""

    event: str | None = None
    key: str | None = None
    error: str | None = None  # an error group's short id
    everything: bool = False
    provider: str | None = None  # only those of this instance; None for those of all


class KeyPlan(msgspec.Struct, frozen=True):
    """What an action does under one key.

    Attributes:
        events: how many events are retried, discarded or edited.
        then: how many other events of the key are applied after that, in order.
    """

    provider: str
    partition: int
    key: str
    events: int
    then: int
    wait: int


def select_letters(
    letters: Sequence[LocatedLetter], selection: LetterSelection
) -> list[LocatedLetter]:
    """Return the selected letters.

    Raises:
        ConfigError: not exactly one way to select is given.
        NoSuchLetter: no letter is selected, or the event's id is ambiguous.
    """
    ways = (selection.event, selection.key, selection.error, selection.everything or None)
    if sum(way is not None for way in ways) != 1:
        raise ConfigError("name the dead letters: an event's id, --key, --error or --all")
    selected = [dead for dead in letters if _is_selected(selection, dead)]
    if selection.event is not None:
        _check_one_event(selection.event, selected)
    if not selected and not selection.everything:
        raise NoSuchLetter(
            f"no dead letter has {_describe_selection(selection)}; it may be applied or discarded "
            f"already: see memorybus dlq ls"
        )
    return selected


def _describe_selection(selection: LetterSelection) -> str:
    ways = (("id", selection.event), ("key", selection.key), ("group", selection.error))
    (text,) = (f"the {name} {value!r}" for name, value in ways if value is not None)
    return f"{text} at {selection.provider}" if selection.provider else text


def _is_selected(selection: LetterSelection, dead: LocatedLetter) -> bool:
    letter = dead.stored.letter
    if selection.event is not None:
        return letter.event_id.startswith(selection.event) and selection.event != ""
    if selection.key is not None:
        return letter.key == selection.key
    return selection.everything or (dead.group != "" and dead.group == selection.error)


def _check_one_event(event: str, letters: Sequence[LocatedLetter]) -> None:
    """Check that an id selects one event of one provider."""
    ids = sorted({dead.stored.letter.event_id for dead in letters})
    if len(ids) > 1:
        more = ", …" if len(ids) > 5 else ""
        raise NoSuchLetter(
            f"{event} begins the ids of {len(ids)} events: {', '.join(ids[:5])}{more}; give more "
            f"of the one you mean"
        )
    providers = sorted({dead.provider for dead in letters})
    if len(providers) > 1:
        raise NoSuchLetter(
            f"event {ids[0]} is a dead letter of {', '.join(providers)}: add --provider"
        )


def plan_keys(
    action: OperatorAction, letters: Sequence[LocatedLetter], chosen: Sequence[LocatedLetter]
) -> list[KeyPlan]:
    """Return what an action on `chosen` does under each of their keys.

    Args:
        letters: all dead letters of the providers, in order.
    """
    meant = {(dead.provider, dead.partition, dead.stored.id) for dead in chosen}
    touched = {dead.lane_and_key for dead in chosen}
    by_key: dict[tuple[str, int, str], list[bool]] = {}
    for dead in letters:
        if dead.lane_and_key in touched:
            is_meant = (dead.provider, dead.partition, dead.stored.id) in meant
            by_key.setdefault(dead.lane_and_key, []).append(is_meant)
    return [_plan_key(action, under, marks) for under, marks in by_key.items()]


def _plan_key(
    action: OperatorAction, under: tuple[str, int, str], marks: Sequence[bool]
) -> KeyPlan:
    if action == "retry":
        return KeyPlan(*under, len(marks), 0, 0)
    others = len(marks) - sum(marks)
    is_freed = marks[0]
    return KeyPlan(*under, sum(marks), others if is_freed else 0, 0 if is_freed else others)


def build_requests(
    decision: LetterRequest, chosen: Iterable[LocatedLetter], new_id: NewId
) -> Iterator[tuple[str, LetterRequest]]:
    """Yield the requests to the owners of the lanes, by provider; a retry covers whole keys.

    Args:
        decision: a request without an id and letters.
    """
    ordered = sorted(chosen, key=attrgetter("lane"))
    for (provider, partition), deads in groupby(ordered, key=attrgetter("lane")):
        letters = [dead.stored.letter for dead in deads]
        field = "keys" if decision.action == "retry" else "entries"
        names = [letter.key if field == "keys" else letter.entry for letter in letters]
        for items in split_items(list(dict.fromkeys(names))):
            own = {"id": new_id(), "partition": partition, field: items}
            yield provider, msgspec.structs.replace(decision, **own)


def send_requests(
    desk: DeadLetters,
    decision: LetterRequest,
    chosen: Iterable[LocatedLetter],
    new_id: NewId,
) -> dict[str, list[LetterRequest]]:
    """Ask the lanes' owners to carry a decision out; return the requests by provider.

    Raises:
        TooManyRequests: a provider would have more open requests than allowed, and gets none.
    """
    asked: dict[str, list[LetterRequest]] = {}
    for provider, request in build_requests(decision, chosen, new_id):
        asked.setdefault(provider, []).append(request)
    for provider, requests in asked.items():
        desk.send(provider, requests)
    return asked


class ActionResult(msgspec.Struct, frozen=True):
    """What became of the keys that an action touched."""

    settled: int
    remaining: int  # how many dead letters wait now
    refused: list[LocatedLetter]  # the dead letters that were refused again


def compare_letters(
    steps: Sequence[KeyPlan], before: Iterable[LocatedLetter], after: Iterable[LocatedLetter]
) -> ActionResult:
    """Return what became of dead letters between two reads of them."""
    touched = {(step.provider, step.partition, step.key) for step in steps}
    was = {(d.lane, d.stored.id): d for d in before if d.lane_and_key in touched}
    now = {(d.lane, d.stored.id): d for d in after if d.lane_and_key in touched}
    refused = [
        dead
        for place, dead in now.items()
        if place in was and dead.stored.letter.attempts > was[place].stored.letter.attempts
    ]
    return ActionResult(len(was.keys() - now.keys()), len(now), refused)


def count_by_key(letters: Iterable[LocatedLetter]) -> Counter[tuple[str, int, str]]:
    return Counter(dead.lane_and_key for dead in letters)


POLL_SECONDS = 0.2


class WaitResult(msgspec.Struct, frozen=True):
    """How waiting ended."""

    remaining: int  # how many requests are not carried out
    unowned: bool  # whether waiting ended because none of their lanes had an owner for too long


def await_requests(
    desk: DeadLetters,
    asked: Mapping[str, Sequence[LetterRequest]],
    clock: Clock,
    *,
    timeout: float,
    ownerless: float,
    progress: Callable[[int], None],
) -> WaitResult:
    """Wait until requests are carried out, for `timeout` seconds at most.

    Args:
        desk: the dead letters, to which the requests were sent.
        timeout: seconds.
        ownerless: seconds without any owner of these lanes after which waiting ends.
        progress: receives how many dead letters the lanes have.

    Raises:
        LogUnavailable: Redis is away; the requests stay.
    """
    begun = owned_at = clock.monotonic()
    while pending := _pending_lanes(desk, asked):
        now = clock.monotonic()
        progress(desk.count(lanes_of_requests(asked)))
        if desk.count_owned(pending):
            owned_at = now
        unowned = now - owned_at > ownerless
        if unowned or now - begun > timeout:
            return WaitResult(len(pending), unowned)
        clock.sleep(POLL_SECONDS)
    progress(desk.count(lanes_of_requests(asked)))
    return WaitResult(0, unowned=False)


def _pending_lanes(desk: DeadLetters, asked: Mapping[str, Sequence[LetterRequest]]) -> list[LaneId]:
    return [
        (provider, request.partition)
        for provider, requests in asked.items()
        for fields in [desk.waiting_requests(provider)]
        for request in requests
        if request.field in fields
    ]


def lanes_of_requests(asked: Mapping[str, Sequence[LetterRequest]]) -> set[LaneId]:
    return {(name, request.partition) for name, requests in asked.items() for request in requests}


class LetterPlan(msgspec.Struct, frozen=True):
    """What an action would do."""

    letters: list[LocatedLetter]  # all dead letters of the selected providers, in order
    chosen: list[LocatedLetter]
    steps: list[KeyPlan]  # what the action does under each of their keys

    @property
    def events(self) -> int:
        """How many events are retried, discarded or edited."""
        return sum(step.events for step in self.steps)

    @property
    def total(self) -> int:
        return sum(step.events + step.then for step in self.steps)


def open_dead_letters(settings: Settings) -> DeadLetters:
    """Return the store of the log's dead letters, after checking the log."""
    desk = DeadLetters(settings)
    desk.check()
    return desk


def letters_of(desk: DeadLetters, provider: str | None) -> list[LocatedLetter]:
    """Return the dead letters of one provider, or of all.

    Raises:
        ConfigError: the provider is unknown.
    """
    providers = desk.providers()
    if provider is not None and provider not in providers:
        raise ConfigError(f"no provider {provider!r}; there are: {', '.join(providers) or 'none'}")
    return desk.letters(providers if provider is None else [provider])


def plan_action(
    desk: DeadLetters, action: OperatorAction, selection: LetterSelection
) -> LetterPlan:
    """Return what an action would do; nothing is changed.

    Raises:
        ConfigError: the selection is unclear, or the provider is unknown.
        NoSuchLetter: it selects no dead letter, or more than one event.
    """
    letters = letters_of(desk, selection.provider)
    chosen = select_letters(letters, selection)
    return LetterPlan(letters, chosen, plan_keys(action, letters, chosen))


def check_edit(
    desk: DeadLetters, dead: LocatedLetter, fields: Mapping[str, Any], settings: Settings
) -> None:
    """Check that edited fields make an event that may replace a dead letter's event.

    Raises:
        InvalidEvent, EventTooLarge: they do not.
    """
    published = desk.event(dead, shown=False)
    if published.event is None:
        raise InvalidEvent(published.why)
    event = edit_event(published.event.envelope.event, dict(fields))
    size = len(msgspec.msgpack.encode(event))
    if size > settings.event_max_bytes:
        raise EventTooLarge(
            f"the edited event has {size} bytes, more than `event_max_bytes` "
            f"({settings.event_max_bytes}); shorten it, or raise the setting"
        )
