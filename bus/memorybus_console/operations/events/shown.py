"""Finds what the prompt of a turn was given, and what it would have been given without some events.

The records are in the log, as long as `hot_window` says; a look reads back to the turn before.
"""

from collections.abc import Collection

import msgspec
from memorybus.errors import MissingEvent
from memorybus.events import Recalled, SessionStarted, ShownMemories, TurnCompleted
from memorybus.history.history import History
from memorybus.log.entry import LoggedEvent
from memorybus.query.query import Query
from memorybus.recall.shown import block_without, record_of, shown_block
from memorybus.text.display import event_name

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
    found = record_of(envelope, (event.envelope for event in history.scan_backward(own)))
    if found is None:
        raise MissingEvent(
            f"no record of what the prompt of turn {envelope.id} was given: either nothing was, or "
            "`recorded_prompts` left it out, or the log has dropped it (`hot_window`); "
            "memorybus events ls --type Recalled lists those that are there"
        )
    return found
