"""Selects the dead letters that an operator names, and says what an action on them does; pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal

import msgspec
from memorybus.dead_letters.queue import LocatedLetter
from memorybus.dead_letters.requests import LetterRequest, split_items
from memorybus.errors import ConfigError, MemoryBusError

OperatorAction = Literal["retry", "discard", "edit"]


class NoSuchLetter(MemoryBusError):
    """The selection finds no dead letter, or more than one event."""


class LetterSelection(msgspec.Struct, frozen=True):
    """Which dead letters an operator selects; exactly one of the first four fields is given.

    Attributes:
        event: an event's id, or the beginning of one.
        key: an order key.
        error: an error group's short id.
        everything: whether all dead letters are selected.
        provider: only those of this instance; None for those of all.
    """

    event: str | None = None
    key: str | None = None
    error: str | None = None
    everything: bool = False
    provider: str | None = None


class KeyPlan(msgspec.Struct, frozen=True):
    """What an action does under one key.

    Attributes:
        provider: the instance.
        partition: the lane's partition.
        key: the order key.
        events: how many events are retried, discarded or edited.
        then: how many other events of the key are applied after that, in order.
        wait: how many events keep waiting.
    """

    provider: str
    partition: int
    key: str
    events: int
    then: int
    wait: int


class OperatorDecision(msgspec.Struct, frozen=True):
    """What an operator decided, and how it is recorded.

    Attributes:
        action: what to do.
        reason: the reason.
        operator: who decided.
        at: the time of the decision, milliseconds.
        event: the fields of the edited event.
    """

    action: OperatorAction
    reason: str
    operator: str
    at: int
    event: dict[str, Any] = {}


def select_letters(
    letters: Sequence[LocatedLetter], wanted: LetterSelection
) -> list[LocatedLetter]:
    """Return the selected letters.

    Raises:
        ConfigError: not exactly one way to select is given.
        NoSuchLetter: no letter is selected, or the event's id is ambiguous.
    """
    ways = (wanted.event, wanted.key, wanted.error, wanted.everything or None)
    if sum(way is not None for way in ways) != 1:
        raise ConfigError("say which dead letters: an event's id, --key, --error or --all")
    found = [dead for dead in letters if _is_selected(wanted, dead)]
    if wanted.event is not None:
        _check_one_event(wanted.event, found)
    if not found and not wanted.everything:
        raise NoSuchLetter(
            f"no dead letter has {_describe_selection(wanted)}; it may be applied or discarded "
            f"already: see memorybus dlq ls"
        )
    return found


def _describe_selection(wanted: LetterSelection) -> str:
    """Return a selection in words."""
    ways = (("id", wanted.event), ("key", wanted.key), ("group", wanted.error))
    (text,) = (f"the {name} {value!r}" for name, value in ways if value is not None)
    return f"{text} at {wanted.provider}" if wanted.provider else text


def _is_selected(wanted: LetterSelection, dead: LocatedLetter) -> bool:
    letter = dead.stored.letter
    if wanted.event is not None:
        return letter.event_id.startswith(wanted.event) and wanted.event != ""
    if wanted.key is not None:
        return letter.key == wanted.key
    return wanted.everything or (dead.group != "" and dead.group == wanted.error)


def _check_one_event(event: str, found: Sequence[LocatedLetter]) -> None:
    """Check that an id selects one event of one provider.

    Raises:
        NoSuchLetter: it selects several.
    """
    ids = sorted({dead.stored.letter.event_id for dead in found})
    if len(ids) > 1:
        more = ", …" if len(ids) > 5 else ""
        raise NoSuchLetter(
            f"{event} begins the ids of {len(ids)} events: {', '.join(ids[:5])}{more}; give more "
            f"of the one you mean"
        )
    providers = sorted({dead.provider for dead in found})
    if len(providers) > 1:
        raise NoSuchLetter(
            f"event {ids[0]} is a dead letter of {', '.join(providers)}: say --provider"
        )


def plan_keys(
    action: OperatorAction, letters: Sequence[LocatedLetter], chosen: Sequence[LocatedLetter]
) -> list[KeyPlan]:
    """Return what an action on `chosen` does under each of their keys.

    Args:
        action: what to do.
        letters: all dead letters of the providers, in order.
        chosen: those among them that are selected.
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
    decision: OperatorDecision, chosen: Iterable[LocatedLetter], new_id: Callable[[], str]
) -> Iterator[tuple[str, LetterRequest]]:
    """Yield the requests to the owners of the lanes, by provider; a retry covers whole keys."""
    ordered = sorted(chosen, key=attrgetter("lane"))
    for (provider, partition), deads in groupby(ordered, key=attrgetter("lane")):
        letters = [dead.stored.letter for dead in deads]
        retried = decision.action == "retry"
        names = dict.fromkeys(one.key if retried else one.entry for one in letters)
        for items in split_items(list(names)):
            yield (
                provider,
                LetterRequest(
                    id=new_id(),
                    partition=partition,
                    action=decision.action,
                    keys=items if retried else (),
                    entries=() if retried else items,
                    event=decision.event,
                    reason=decision.reason,
                    operator=decision.operator,
                    at=decision.at,
                ),
            )


class ActionResult(msgspec.Struct, frozen=True):
    """What became of the keys that an action touched.

    Attributes:
        settled: how many of their dead letters are settled.
        left: how many dead letters wait now.
        refused: the dead letters that were refused again.
    """

    settled: int
    left: int
    refused: list[LocatedLetter]


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
    """Count the dead letters under each key."""
    return Counter(dead.lane_and_key for dead in letters)
