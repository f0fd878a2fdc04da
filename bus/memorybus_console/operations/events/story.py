"""Finds out what became of an event: where it lies, and whether each provider has applied it.

It reads what `status` reads: checkpoints, done-sets, dead letters, pauses. It costs one round trip
for all lanes, the lane's dead letters if the event's key is parked, and at most `DECISIONS` events
after the event, to find what operators decided about it. The cost does not grow with the history.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Literal

import msgspec
from memorybus.dead_letters.queue import DeadLetters
from memorybus.dead_letters.records import DeadLetter
from memorybus.errors import MissingEvent
from memorybus.events import (
    DeadLetterResolved,
    Omitted,
    Recalled,
    SessionStarted,
    ShownMemories,
    TurnCompleted,
)
from memorybus.history.backward import BackwardMark
from memorybus.history.history import History, Whereabouts
from memorybus.log.entry import LoggedEvent
from memorybus.query.query import Query, row_of
from memorybus.query.ranges import Plan
from memorybus.recall.shown import block_without, record_of, shown_block
from memorybus.registry.instances import Instance, InstancesView, live_name
from memorybus.registry.lanes import LaneState
from memorybus.text.display import event_name

from memorybus_console.operations.stores import Stores

DECISIONS = 5_000
"""How many later events of its partition are searched for operators' decisions about an event."""

_WAITS_BEHIND = "never tried: it waits behind a refused event of its key"

ApplyOutcome = Literal["applied", "waiting", "parked", "discarded", "left out"]


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an event at one instance of a provider.

    Attributes:
        role: ``serves …`` or ``copy of …`` for an instance with another name than its provider's.
        outcome: the lane has passed the event (``applied``), has not reached it (``waiting``) or
            has parked it (``parked``); or an operator gave it up (``discarded``); or the instance
            does not take it (``left out``), since it begins later or its plan excludes the event.
        before: how many events the lane has to pass before this one; 0 unless it waits.
        why: the reason for the outcome; hostile text.
        tries: how often a parked event was tried; 0 if it only waits behind another one.
        behind: how many events of its key are parked, including this one; 0 if it is not parked.
        letter: the id of its dead letter in the lane's stream; "" if there is none.
    """

    instance: str
    role: str = ""
    outcome: ApplyOutcome
    before: int = 0
    why: str = ""
    tries: int = 0
    behind: int = 0
    letter: str = ""


class EventStory(msgspec.Struct, frozen=True):
    """One event, where it lies, and what became of it at each instance."""

    event: LoggedEvent
    where: Whereabouts
    fates: list[Fate]


class EventAtInstance(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one event at one instance.

    Attributes:
        parked_of_key: how many events of the event's order key are parked in the lane; 0 for none.
        decided: the last decision of an operator about it; None if there is none.
    """

    instance: str
    n: int
    lane: LaneState
    parked_of_key: int = 0
    letter: DeadLetter | None = None  # the event's dead letter; None if there is none
    left_out: str = ""  # why the instance does not take the event; "" if it does
    decided: DeadLetterResolved | None = None
    hindered: str = ""  # why the instance is paused or fails; "" if neither


def fate_of(seen: EventAtInstance) -> Fate:
    """Return what became of an event at an instance; pure."""
    name, lane, letter, decided = seen.instance, seen.lane, seen.letter, seen.decided
    if letter is not None:
        why = letter.reason if letter.refused else _WAITS_BEHIND
        tries = letter.attempts
        return Fate(
            instance=name, outcome="parked", why=why, tries=tries, behind=seen.parked_of_key
        )
    if seen.left_out:
        return Fate(instance=name, outcome="left out", why=seen.left_out)
    if not lane.has_passed(seen.n):
        why = lane.halted or seen.hindered or ("" if lane.owned else "no worker has its lane")
        return Fate(instance=name, outcome="waiting", before=lane.before(seen.n), why=why)
    if decided is None:
        return Fate(instance=name, outcome="applied")
    if decided.action == "discard":
        why = f"{decided.operator}: {decided.reason}"
        return Fate(instance=name, outcome="discarded", why=why)
    why = f"as {decided.operator} edited it: {decided.reason}"
    return Fate(instance=name, outcome="applied", why=why)


def event_at(history: History, mark: BackwardMark) -> LoggedEvent:
    """Return the event at a position.

    Raises:
        MissingEvent: there is none, or it was forgotten or left out.
        ArchiveError: the archive cannot say what was forgotten.
    """
    exists = mark.partition < history.log.partitions
    event = history.event_at(mark.partition, mark.entry) if exists else None
    if event is None or isinstance(event.envelope.event, Omitted):
        raise MissingEvent(
            f"there is no event at p{mark.partition:02d}:{mark.entry}: it was trimmed, forgotten "
            f"or never there; search with: memorybus events search WORDS"
        )
    return event


def story_of(stores: Stores, desk: DeadLetters, event: LoggedEvent) -> EventStory:
    """Return what became of an event at every instance that is configured, registered or a copy.

    Raises:
        LogError: Redis is away, or something there is not ours.
    """
    place, view = event.position, stores.instances.read_view()
    roles = _roles(stores, view)
    lanes = stores.lanes.lanes_of_key(place.partition, list(roles), event.envelope.key)
    decided = {decision.provider: decision for decision in _decisions(stores.history, event)}
    hindered = _hindered(stores, view)
    fates = []
    for name, (lane, parked_of_key) in lanes.items():
        dead = desk.letter_at((name, place.partition), place.entry) if parked_of_key else None
        fate = fate_of(
            EventAtInstance(
                instance=name,
                n=place.n,
                lane=lane,
                parked_of_key=parked_of_key,
                letter=None if dead is None else dead.stored.letter,
                left_out=_omission_reason(view.all.get(name), event),
                decided=decided.get(name),
                hindered=hindered.get(name, ""),
            )
        )
        letter = "" if dead is None else dead.stored.id
        fates.append(msgspec.structs.replace(fate, role=roles[name], letter=letter))
    return EventStory(event, stores.history.whereabouts(place), fates)


def _roles(stores: Stores, view: InstancesView) -> dict[str, str]:
    """Return the instances and their roles; those that serve agents come first."""
    providers = dict.fromkeys([*stores.roster.providers(), *stores.settings.providers])
    serving = {live_name(name, view.live): name for name in providers}
    roles = {live: "" if live == name else f"serves {name}" for live, name in serving.items()}
    copies = {
        instance.name: f"copy of {instance.provider}"
        for instance in view.all.values()
        if instance.is_copy
    }
    return roles | {name: role for name, role in copies.items() if name not in roles}


def _hindered(stores: Stores, view: InstancesView) -> Mapping[str, str]:
    """Return why instances are paused or fail, by instance."""
    failing = {
        name: why for worker in stores.roster.alive() for name, why in worker.failing.items()
    }
    paused = {name: f"paused: {pause.reason}" for name, pause in view.pauses.items()}
    return failing | paused


def _omission_reason(instance: Instance | None, event: LoggedEvent) -> str:
    """Return why an instance does not take an event; "" if it does."""
    if instance is None:
        return ""
    plan, place = instance.plan, event.position
    if not plan.takes(place.partition, place.n):
        begins = plan.next(place.partition, place.n) is not None
        return "it is before its start" if begins else "it is behind its end"
    return "" if plan.query.wants(row_of(event.envelope)) else "its plan means other events"


def _decisions(history: History, event: LoggedEvent) -> Iterator[DeadLetterResolved]:
    """Yield operators' decisions about an event, in order, from the next `DECISIONS` events."""
    place, envelope = event.position, event.envelope
    query = Query(types=(DeadLetterResolved.__name__,), sessions=(envelope.session.id,))
    after, n = place.entry, place.n
    while n < place.n + DECISIONS:
        page = history.read(place.partition, after, after_n=n, plan=Plan(query=query)).events
        for logged in page:
            decision = logged.envelope.event
            if isinstance(decision, DeadLetterResolved) and decision.event_id == envelope.id:
                yield decision
        if not page:
            return
        after, n = page[-1].position.entry, page[-1].position.n


_TYPES = tuple(kind.__name__ for kind in (Recalled, TurnCompleted, SessionStarted))


class PromptShown(msgspec.Struct, frozen=True):
    """What the prompt of a turn was given.

    Attributes:
        block: the block, word for word; it is hostile text.
    """

    turn: str
    block: str
    memories: tuple[ShownMemories, ...]


class PromptWithout(msgspec.Struct, frozen=True):
    """What the prompt of a turn would have been given without some events.

    Attributes:
        block: the block without their memories; "" if none is left. It is hostile text.
    """

    turn: str
    block: str
    removed: int


def shown_to(history: History, turn: LoggedEvent) -> PromptShown:
    """Return what a turn's prompt was given; `turn` may also be the record itself.

    Raises:
        MissingEvent: there is no record of it.
        CorruptEnvelope: the record is damaged.
    """
    record = _record(history, turn)
    return PromptShown(turn.envelope.id, shown_block(record), record.memories)


def without_events(history: History, turn: LoggedEvent, events: Collection[str]) -> PromptWithout:
    """Return what a turn's prompt would have been given without some events.

    Raises:
        MissingEvent, CorruptEnvelope: see `shown_to`.
    """
    record = _record(history, turn)
    removed = sum(event in events for part in record.memories for event in part.events)
    return PromptWithout(turn.envelope.id, block_without(record, events), removed)


def _record(history: History, turn: LoggedEvent) -> Recalled:
    envelope = turn.envelope
    if isinstance(envelope.event, Recalled):
        return envelope.event
    if not isinstance(envelope.event, TurnCompleted):
        raise MissingEvent(
            f"{envelope.id} is a {event_name(envelope.event)}, and only turns have a prompt; "
            "memorybus events ls --type TurnCompleted --json lists them"
        )
    scope = envelope.scope
    own = Query(agents=(scope.agent,), users=(scope.user,), types=_TYPES)
    record = record_of(envelope, (event.envelope for event in history.scan_backward(own)))
    if record is None:
        raise MissingEvent(
            f"no record of what the prompt of turn {envelope.id} was given: either nothing was, or "
            "`recorded_prompts` left it out, or the log has dropped it (`hot_window`); "
            "memorybus events ls --type Recalled lists those that are there"
        )
    return record
