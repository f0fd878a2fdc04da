"""The window: keys side by side, each in order, and a checkpoint that never passes what is open."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.events import Envelope, Position, Scope, SessionRef, TurnCompleted
from memorybus.ids import derived_id
from memorybus.log.entry import LoggedEvent, Place
from memorybus.registry.lanes import decode_done_above
from memorybus_workers.lanes.window import READ_AHEAD_WINDOWS, LaneWindow, StartPoint

SIZE = 64


def turn(n: int, key: str) -> LoggedEvent:
    """Return an event of a key, numbered."""
    envelope = Envelope(
        id=derived_id("window", str(n)),
        key=key,
        scope=Scope(),
        session=SessionRef("s", "s"),
        at=n,
        event=TurnCompleted(user="u", assistant="a"),
    )
    return LoggedEvent(Position(0, f"{n}-0", n), envelope)


def turns(keys: Sequence[str], first: int = 1) -> list[LoggedEvent]:
    """Return events with consecutive numbers."""
    return [turn(n, key) for n, key in enumerate(keys, first)]


def fresh(begin: StartPoint | None = None) -> LaneWindow:
    """Return an empty window."""
    return LaneWindow(begin or StartPoint("0-0", 0), SIZE)


def test_a_batch_that_leaves_nothing_open_moves_the_checkpoint():
    """The checkpoint follows a batch that was applied whole."""
    window = fresh()
    window.take_in(turns("aabc"))
    assert (window.n, window.idle, window.encoded_done_set()) == (4, True, b"")


def test_the_checkpoint_stays_below_what_is_open():
    """G4: the checkpoint stands before the first open event; what is done above it is kept."""
    window = fresh()
    window.take_in(turns("aabc"), left={2})
    assert (window.n, window.read_n) == (1, 4)
    assert [window.is_done(n) for n in (1, 2, 3, 4, 5)] == [True, False, True, True, False]


def test_a_crash_finds_what_was_done():
    """G4: a window begun from a checkpoint and its done-set knows what need not be done again."""
    window = fresh()
    window.take_in(turns("abcdef"), left={2, 5})
    after = fresh(
        StartPoint(window.entry, window.n, decode_done_above(window.encoded_done_set(), window.n))
    )
    assert [n for n in range(1, 8) if after.is_done(n)] == [1, 3, 4, 6]


@pytest.mark.parametrize(("moved", "found"), [(0, [3, 5]), (1, [3, 5]), (3, [5]), (9, [])])
def test_a_done_set_holds_for_a_checkpoint_that_moved_on(moved, found):
    """A release without done-sets may advance the checkpoint: the numbers still mean the same."""
    window = fresh()
    window.take_in(turns("abcde"), left={1, 2, 4})
    done = decode_done_above(window.encoded_done_set(), moved)
    assert [n for n in range(moved + 1, 12) if done >> (n - moved - 1) & 1] == found


def test_one_event_of_a_key_at_a_time():
    """G3: of each key only the first open event can be taken, the next once it is finished."""
    window = fresh()
    events = turns("abab")
    window.take_in(events, left={1, 2, 3, 4})
    assert list(window.take(10)) == events[:2]
    assert not list(window.take(10))
    window.finish(events[1])
    assert list(window.take(10)) == [events[3]]
    assert window.n == 0
    window.finish(events[0])
    assert window.n == 2


def test_a_postponed_key_waits_and_others_go_on():
    """G6: a key that failed waits until its time; the others are taken meanwhile."""
    window = fresh()
    events = turns("ab")
    window.take_in(events, left={1, 2})
    (first, second) = window.take(10)
    window.postpone(first, 5.0)
    window.finish(second)
    assert window.next_at() == 5.0
    window.wake(4.9)
    assert not window.has_ready()
    window.wake(5.0)
    assert list(window.take(10)) == [first]


def test_an_abandoned_key_is_done_with_all_its_events():
    """G6: what waits behind a parked event is put aside with it."""
    window = fresh()
    events = turns("aba")
    window.take_in(events, left={1, 2, 3})
    (first, _) = window.take(10)
    assert window.waiting_from(first) == [events[0], events[2]]
    window.pass_over(first)
    assert (window.n, window.open) == (1, 1)


def test_a_full_window_has_no_room():
    """G10: a lane holds no more events than the window's size, and reads so many times ahead."""
    window = LaneWindow(StartPoint("0-0", 0), 4)
    window.take_in(turns("abcd"), left={1, 2, 3, 4})
    assert window.room() == 0
    for event in list(window.take(3)):
        window.finish(event)
    assert window.room() == 3
    window.take_in(turns("x" * (4 * READ_AHEAD_WINDOWS - 1), first=5))
    assert window.room() == 0


@pytest.mark.parametrize(("to", "found"), [(3, [4]), (4, []), (0, [])])
def test_a_gap_keeps_what_is_known_to_be_done(to, found):
    """A lane that goes on behind a gap keeps its done-set; before a lost tail it means nothing."""
    window = fresh(StartPoint("1-0", 1, 0b101))  # 2 and 4 are done
    window.jump(to)
    assert [n for n in range(window.n + 1, 9) if window.is_done(n)] == found


def test_a_busy_key_does_not_fill_the_window():
    """G10: of one key only a share of the window is held; others go on far ahead of it."""
    window = LaneWindow(StartPoint("0-0", 0), 16)
    log = turns("a" * 10 + "b")
    window.take_in(log, left=set(range(1, 12)))
    assert window.open == window.most + 1
    first, other = window.take(9)
    window.finish(other)
    window.finish(first)
    window.finish(*window.take(9))
    assert window.key_to_read_again() == ("a", Place("2-0", 2))
    window.take_in_skipped(log[2:5])
    assert [e.position.n for e in window.waiting_from(log[2])] == [3, 4]
    assert (window.n, window.is_done(11), window.is_done(5)) == (2, True, False)


def test_what_was_skipped_of_a_parked_key_is_put_aside_when_it_is_read():
    """G6: the skipped events of a parked key count as done once they are read and put aside."""
    window = LaneWindow(StartPoint("0-0", 0), 8)
    log = turns("aaab")
    window.take_in(log, left={1, 2, 3, 4})
    first, other = window.take(9)
    window.pass_over(first)
    assert window.key_to_read_again() == ("a", Place("1-0", 1))
    window.take_in_skipped(log[1:], keep=False)
    window.finish(other)
    assert (window.n, window.idle, window.key_to_read_again()) == (4, True, None)


@given(
    keys=st.text("abcd", min_size=1, max_size=60),
    seed=st.integers(0, 10**6),
    size=st.sampled_from([SIZE, 16, 8]),
)
def test_order_and_checkpoint_hold_under_any_course(keys, seed, size):
    """G3, G4: whatever finishes, fails or is read next, keys keep order and nothing is passed."""
    rng = random.Random(seed)
    window = LaneWindow(StartPoint("0-0", 0), size)
    log = turns(keys)
    busy: list[LoggedEvent] = []
    done: list[int] = []
    now = 0.0
    while window.read_n < len(log) or not window.idle:
        now += 1.0
        move = rng.randrange(5)
        if move == 0 and window.room() and window.read_n < len(log):
            chunk = log[window.read_n :][: rng.randint(1, window.room())]
            held = {e.position.n for e in chunk if e.envelope.key in window.keys}
            left = held | {e.position.n for e in chunk if rng.random() < 0.8}
            left = {e.position.n for e in chunk if behind(e, chunk, left)}
            window.take_in(chunk, left)
            done += [e.position.n for e in chunk if e.position.n not in left]
        elif move == 1:
            window.wake(now)
            busy += window.take(rng.randint(1, 4))
        elif move == 2 and busy:
            event = busy.pop(rng.randrange(len(busy)))
            window.finish(event)
            done.append(event.position.n)
        elif move == 3 and busy:
            window.postpone(busy.pop(), now + 2)
        elif move == 4 and (again := window.key_to_read_again()):
            window.take_in_skipped(log[again[1].n :][: rng.randint(1, 9)])
        agrees(window, set(done))
    for key in set(keys):
        numbers = [n for n in done if keys[n - 1] == key]
        assert numbers == sorted(numbers)
    assert sorted(done) == list(range(1, len(log) + 1))


def behind(event: LoggedEvent, chunk: list[LoggedEvent], left: set[int]) -> bool:
    """Whether an event, or an earlier one of its key in the chunk, stays open."""
    n, key = event.position.n, event.envelope.key
    return any(e.position.n in left for e in chunk if e.envelope.key == key and e.position.n <= n)


def agrees(window: LaneWindow, done: set[int]) -> None:
    """Fail unless the window says exactly what is done, and its checkpoint passes nothing else."""
    every = range(1, window.read_n + 1)
    assert {n for n in every if window.is_done(n)} == done
    low = next((n - 1 for n in every if n not in done), window.read_n)
    assert window.n <= low  # what was skipped is not known before it is read again
    assert window.n == low or window.key_to_read_again() or window.open < len(every) - len(done)
    kept = decode_done_above(window.encoded_done_set(), window.n)
    assert {window.n + 1 + i for i in range(len(every)) if kept >> i & 1} == {
        n for n in done if n > window.n
    }
