"""What a pass through dead letters decides, for any letters and any requests."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from memorybus.dead_letters.records import DeadLetter, LetterRequest
from memorybus_workers.dead_letters.decide import LEAVE, Pass

KEYS = ("a", "b", "c")


def letter(n: int, key: str, *, refused: bool = False) -> DeadLetter:
    """Return the dead letter of the n-th event."""
    return DeadLetter(f"e{n}", f"{n}-0", n, key, "T", "why", attempts=int(refused))


def request(action, *, keys: Sequence[str] = (), entries: Sequence[str] = ()) -> LetterRequest:
    """Return a request for partition 0."""
    return LetterRequest("f" * 32, 0, action, keys=tuple(keys), entries=tuple(entries))


@st.composite
def lanes(draw: st.DrawFn) -> list[DeadLetter]:
    """Return dead letters as they come to be: the first of each key was refused."""
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=12))
    return [letter(n, key, refused=key not in keys[: n - 1]) for n, key in enumerate(keys, 1)]


@given(lanes(), st.sets(st.sampled_from(KEYS)), st.data())
def test_a_key_is_applied_in_order(letters, wanted, data):
    """G3: nothing is applied while an earlier letter of its key stays, whatever is asked."""
    entries = [one.entry for one in letters]
    some = st.sets(st.sampled_from(entries)) if entries else st.just(set())
    discarded, edited, refused = data.draw(some), data.draw(some), data.draw(some)
    edited -= discarded
    way = Pass(
        1,
        [
            request("retry", keys=sorted(wanted)),
            request("discard", entries=sorted(discarded)),
            request("edit", entries=sorted(edited)),
        ],
    )
    staying: set[str] = set()
    for one in letters:
        act = way.decide(one)
        assert way.decide(one) == act, "asked again it says the same"
        assert (act.discard is not None) == (one.entry in discarded)
        assert (act.edit is not None) == (one.entry in edited)
        assert not (act.apply and one.key in staying)
        if one.key in wanted and one.key not in staying and not act.discard:
            assert act.apply, "what was asked for is done"
        if act.apply and one.entry in refused:
            way.note_left(one)
        if not act.discard and (not act.apply or one.entry in refused):
            staying.add(one.key)


def test_what_nobody_asked_for_stays():
    """G6: a key that was not selected is left as it is."""
    way = Pass(1, [request("retry", keys=["a"])])
    assert way.decide(letter(1, "b", refused=True)) is LEAVE
    assert way.decide(letter(2, "b")) is LEAVE
    assert way.decide(letter(3, "a", refused=True)).apply


def test_what_waits_behind_nothing_goes_on():
    """G6: after an owner that died between a discard and its end, the next one drains the key."""
    way = Pass(1, [request("discard", entries=["1-0"])])
    assert way.decide(letter(2, "a")).apply, "its first letter is gone"
