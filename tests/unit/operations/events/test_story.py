"""What became of an event, decided from what is known of it and one lane."""

import pytest
from memorybus.dead_letters.records import DeadLetter
from memorybus.events import DeadLetterResolved
from memorybus.registry.lanes import LaneState
from memorybus_console.operations.events.story import EventAtInstance, Fate, fate_of
from memorybus_console.views.events import describe_fate

LETTER = DeadLetter(
    event_id="0" * 32, entry="5-0", n=5, key="k", type="TurnCompleted", reason="bad", attempts=3
)
BEHIND = DeadLetter(event_id="1" * 32, entry="6-0", n=6, key="k", type="T", reason="bad")
OWNED = LaneState(n=3, owned=True)


def decided(action: str) -> DeadLetterResolved:
    """Return an operator's decision."""
    return DeadLetterResolved(
        provider="p", event_id="0" * 32, action=action, reason="why", operator="ann@host"
    )


CASES = [
    (EventAtInstance(instance="p", n=3, lane=OWNED), "applied", ""),
    (EventAtInstance(instance="p", n=4, lane=OWNED), "waiting", "next"),
    (EventAtInstance(instance="p", n=9, lane=OWNED), "waiting", "5 before it"),
    (
        EventAtInstance(instance="p", n=9, lane=LaneState(n=3, done=0b10110, owned=True)),
        "waiting",
        "2 before it",
    ),
    (
        EventAtInstance(instance="p", n=5, lane=LaneState(n=3, done=0b10, owned=True)),
        "applied",
        "",
    ),
    (
        EventAtInstance(instance="p", n=4, lane=LaneState(n=3)),
        "waiting",
        "next; no worker has its lane",
    ),
    (
        EventAtInstance(instance="p", n=4, lane=LaneState(n=3, halted="no archive"), hindered="x"),
        "waiting",
        "next; no archive",
    ),
    (
        EventAtInstance(instance="p", n=4, lane=OWNED, hindered="paused: upgrade"),
        "waiting",
        "next; paused: upgrade",
    ),
    (
        EventAtInstance(instance="p", n=3, lane=LaneState(n=9), parked_of_key=4, letter=LETTER),
        "parked",
        "bad; 3 tries, 4 behind",
    ),
    (
        EventAtInstance(instance="p", n=6, lane=LaneState(n=9), parked_of_key=4, letter=BEHIND),
        "parked",
        "never tried: it waits behind a refused event of its key; 4 behind",
    ),
    (
        EventAtInstance(instance="p", n=1, lane=LaneState(n=9), left_out="it is before its start"),
        "left out",
        "it is before its start",
    ),
    (
        EventAtInstance(instance="p", n=1, lane=LaneState(n=9), decided=decided("discard")),
        "discarded",
        "ann@host: why",
    ),
    (
        EventAtInstance(instance="p", n=1, lane=LaneState(n=9), decided=decided("edit")),
        "applied",
        "as ann@host edited it: why",
    ),
]


@pytest.mark.parametrize(("seen", "outcome", "said"), CASES)
def test_what_became_of_an_event(seen, outcome, said):
    """A lane that passed an event applied it, unless it is parked, discarded or not meant."""
    fate = fate_of(seen)
    assert fate.outcome == outcome
    assert describe_fate(fate) == said


def test_what_is_parked_is_told_before_what_was_decided():
    """An event whose edit was refused again is parked, whatever an operator decided before."""
    seen = EventAtInstance(
        instance="p",
        n=3,
        lane=LaneState(n=9),
        parked_of_key=1,
        letter=LETTER,
        decided=decided("edit"),
    )
    assert fate_of(seen) == Fate(instance="p", outcome="parked", why="bad", tries=3, behind=1)
