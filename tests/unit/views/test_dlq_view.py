"""Dead letters for operators: selection, what would follow, requests, tables."""

import pytest
from memorybus.dead_letters.queue import EVENT_GONE, LetterEvent, LocatedLetter
from memorybus.dead_letters.records import (
    MAX_ITEMS,
    Amendment,
    DeadLetter,
    LetterRequest,
    StoredLetter,
)
from memorybus.errors import ConfigError
from memorybus.ids import new_id
from memorybus_console.actions.dead_letters import LettersActed, PlannedLetters
from memorybus_console.operations.dead_letters import (
    KeyPlan,
    LetterSelection,
    NoSuchLetter,
    build_requests,
    compare_letters,
    plan_keys,
    select_letters,
)
from memorybus_console.views import dead_letters
from memorybus_console.views.presenter import table_of
from rich.console import Console


def dead(n, key="k", reason="", *, provider="p", partition=0, event="", tries=None):
    """Return a dead letter; without a reason it waits behind another."""
    letter = DeadLetter(
        event or f"{n:032x}",
        f"{n}-0",
        n,
        key,
        "TurnCompleted",
        reason or "waits",
        attempts=int(bool(reason)) if tries is None else tries,
        first_at=1_000 * n if reason else 0,
        last_at=2_000 * n if reason else 0,
    )
    return LocatedLetter(provider, partition, StoredLetter(f"{n}-9", letter))


LETTERS = [
    dead(0xA1, "k", "no row 7"),
    dead(0xA2, "k"),
    dead(0xA3, "k"),
    dead(0xB1, "j", "no row 8", partition=1),
    dead(0xC1, "k", "down", provider="q"),
]


def chosen(**wanted):
    """Return the numbers of what a selection means."""
    return [one.stored.letter.n for one in select_letters(LETTERS, LetterSelection(**wanted))]


def test_each_way_to_select():
    """G6: by event, key, error group or all."""
    group = LETTERS[0].group
    assert chosen(event=f"{0xA2:032x}") == [0xA2]
    assert chosen(key="k") == [0xA1, 0xA2, 0xA3, 0xC1]
    assert chosen(error=group) == [0xA1, 0xB1]
    assert chosen(everything=True) == [0xA1, 0xA2, 0xA3, 0xB1, 0xC1]


@pytest.mark.parametrize(
    ("wanted", "error", "said"),
    [
        ({}, ConfigError, "name the dead letters"),
        ({"key": "k", "everything": True}, ConfigError, "name the dead letters"),
        ({"event": "0" * 20}, NoSuchLetter, "begins the ids of 5 events"),
        ({"event": "f"}, NoSuchLetter, "no dead letter"),
        ({"event": ""}, NoSuchLetter, "no dead letter"),
        ({"error": ""}, NoSuchLetter, "no dead letter"),
        ({"key": "x"}, NoSuchLetter, "no dead letter has the key 'x'"),
        ({"key": "x", "provider": "p"}, NoSuchLetter, "the key 'x' at p"),
    ],
)
def test_an_unclear_selection_is_refused(wanted, error, said):
    """G6: nothing is done to what was not clearly meant."""
    with pytest.raises(error, match=said):
        chosen(**wanted)


def test_an_event_of_two_providers_needs_a_name():
    """G6: one event refused by two providers is two dead letters."""
    twins = [dead(1, "k", "x", event="e" * 32), dead(1, "k", "x", provider="q", event="e" * 32)]
    with pytest.raises(NoSuchLetter, match="add --provider"):
        select_letters(twins, LetterSelection(event="e" * 32))


def test_a_retry_takes_the_whole_key():
    """G3: retrying an event retries its key, from its first letter."""
    assert plan_keys("retry", LETTERS, [LETTERS[1]]) == [KeyPlan("p", 0, "k", 3, 0, 0)]


def test_a_discard_says_what_follows():
    """G6: discarding the first applies those behind; discarding another leaves them waiting."""
    assert plan_keys("discard", LETTERS, [LETTERS[0]]) == [KeyPlan("p", 0, "k", 1, 2, 0)]
    assert plan_keys("discard", LETTERS, [LETTERS[2]]) == [KeyPlan("p", 0, "k", 1, 0, 2)]
    assert plan_keys("edit", LETTERS, [LETTERS[0]]) == [KeyPlan("p", 0, "k", 1, 2, 0)]


def test_requests_go_to_each_lane():
    """G10: each lane's owner is asked once, of no more than a request may hold."""
    retry, discard = (
        LetterRequest("", 0, "retry", operator="me", at=1),
        LetterRequest("", 0, "discard", reason="why", operator="me", at=1),
    )
    asked = list(build_requests(retry, LETTERS, new_id))
    assert [(name, one.partition, one.keys) for name, one in asked] == [
        ("p", 0, ("k",)),
        ("p", 1, ("j",)),
        ("q", 0, ("k",)),
    ]
    many = [dead(n) for n in range(1, MAX_ITEMS + 2)]
    sizes = [len(one.entries) for _, one in build_requests(discard, many, new_id)]
    assert sizes == [MAX_ITEMS, 1]


def test_what_changed_between_two_looks():
    """G6: settled, left and refused again are told apart, by what is there afterwards."""
    steps = plan_keys("retry", LETTERS, LETTERS[:1])
    after = [dead(0xA2, "k", "no row 9", tries=1), LETTERS[2], LETTERS[3], LETTERS[4]]
    result = compare_letters(steps, LETTERS, after)
    assert (result.settled, result.remaining) == (1, 2)
    assert [one.stored.letter.n for one in result.refused] == [0xA2]


def acted(action, settled, discarded):
    """Return what was done with the dead letters of one key."""
    return LettersActed(
        action=action,
        events=1,
        then=0,
        keys=[KeyPlan("p", 0, "k", 1, 0, 0)],
        finished=True,
        settled=settled,
        discarded=discarded,
        remaining=2,
        refused=[],
        reasons={},
        requests=0,
        unowned=False,
    )


def test_what_was_done_is_told_by_what_was_asked():
    """G6: what a discard gave up is never counted as applied, nor the other way round."""
    assert acted("retry", 3, 0).headline() == (
        "3 events applied; 2 events of the same keys still wait"
    )
    assert acted("discard", 3, 1).headline() == (
        "1 event discarded, 2 events applied; 2 events of the same keys still wait"
    )


def test_a_discard_of_what_was_never_tried_is_warned_of():
    """G6: by key or all, a discard also gives up events that only wait: that is said before."""
    (note,) = PlannedLetters("discard", 3, 0, [], untried=2).notes()
    assert "2 of them were never tried" in note.text
    assert not list(PlannedLetters("discard", 3, 0, [], untried=0).notes())


def test_groups_count_what_waits():
    """G6: an error group says how many keys it holds up, and how much waits behind."""
    errors = dead_letters.letters_by_error(LETTERS)
    assert [(row.provider, row.keys, row.refused, row.events) for row in errors] == [
        ("p", 2, 2, 4),
        ("q", 1, 1, 1),
    ]
    assert errors[0].reason == "no row …"
    keys = dead_letters.letters_by_key(LETTERS)
    assert [(row.key, row.events) for row in keys] == [("k", 3), ("j", 1), ("k", 1)]
    first, _ = dead_letters.letters_by_provider(LETTERS)
    assert first == dead_letters.LetterProvider(provider="p", keys=2, events=4, errors=1)


def test_hostile_records_are_shown_harmlessly():
    """Keys, reasons, edits and tracebacks cannot steer a terminal."""
    evil = "\x1b[2J[red]\u202e"
    letter = DeadLetter("e" * 32, "1-0", 1, evil, evil, evil, attempts=1, trace=evil, session=evil)
    one = LocatedLetter(evil, 0, StoredLetter("1-1", letter, Amendment(edited={"user": evil})))
    behind = dead(2, evil)
    letters = [
        dead_letters.letter_of(dead, LetterEvent(None, why + EVENT_GONE))
        for dead, why in ((one, evil), (behind, ""))
    ]
    shown = [
        table_of(dead_letters.letters_by_key([one])),
        table_of(dead_letters.letters_by_error([one])),
        *(part for letter in letters for part in dead_letters.letter_parts(letter, 1, evil)),
        table_of(plan_keys("discard", [one], [one])),
    ]
    console = Console(width=200, markup=False, highlight=False, record=True)
    with console.capture() as capture:
        for part in shown:
            console.print(part)
    assert "\x1b[2J" not in capture.get()
    assert "\u202e" not in capture.get()
    assert "can only be discarded" in capture.get()
