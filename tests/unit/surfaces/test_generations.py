"""Generations: names, states, what goes on after a kill, where a plan ends; as tables (G8)."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.errors import ConfigError
from memorybus.inspect_jobs import Page
from memorybus.instances import Hold, Instance, Live, Sight, answers
from memorybus.plan import WHOLE, Plan, Span
from memorybus.query import Query
from memorybus.rebuild_lock import held_reason, prepared
from memorybus.surfaces.comparing import Comparison, Difference, between, compared, told
from memorybus.surfaces.generations import (
    behind,
    check_same,
    comparable,
    ended,
    generations,
    next_name,
    opened,
    spans_until,
    swapped,
    unended,
    unfinished,
)

LIVE = Live("p@2", "p@1")


def copy(name: str, **more: Any) -> Instance:
    """Return a generation of ``p``."""
    return Instance(**{"name": name, "provider": "p", "purpose": "rebuild", **more})


def sight(
    *copies: Instance, live: Live | None = None, held: dict[str, Hold] | None = None
) -> Sight:
    """Return the three hashes."""
    lives = {"p": live} if live else {}
    return Sight({one.name: one for one in copies}, lives, held or {})


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        (sight(), "p@1"),
        (sight(copy("p@1")), "p@2"),
        (sight(live=LIVE), "p@3"),
        (sight(copy("p.verify@7", purpose="verify")), "p@8"),
        (sight(Instance(name="other", provider="p")), "p@1"),
    ],
)
def test_a_number_is_never_given_twice(seen: Sight, name: str) -> None:
    """G8: the next generation's number is above all that are known of."""
    assert next_name("p", seen) == name


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        (sight(), None),
        (sight(copy("p@1")), "p@1"),
        (sight(copy("p@1", dropped=True)), None),
        (sight(copy("p@1", purpose="replay")), None),
        (sight(copy("p@1"), copy("p@2"), live=LIVE), None),
        (sight(copy("p@1"), copy("p@2"), copy("p@3"), live=LIVE), "p@3"),
        (sight(copy("p@1"), copy("p@2"), live=Live("p", "p@2")), None),
    ],
)
def test_what_was_begun_is_found_again(seen: Sight, name: str | None) -> None:
    """G8: the same command goes on with the newest copy that neither serves nor did."""
    found = unfinished("p", "rebuild", seen)
    assert (found.name if found else None) == name


def test_another_plan_does_not_go_on_with_it() -> None:
    """G8: who asks for something else is told how to drop what was begun."""
    begun = copy("p@1", plan=Plan(query=Query(except_users=("m",))))
    check_same(begun, begun, "drop it")
    with pytest.raises(ConfigError, match="drop it"):
        check_same(begun, copy("p@2"), "drop it")
    then = copy("p@1", plan=Plan(spans=spans_until({0: 3}, {0: 9}, 1)))
    check_same(then, copy("p@2", plan=Plan(spans=spans_until({0: 3}, {0: 12}, 1))), "drop it")
    with pytest.raises(ConfigError):
        check_same(then, copy("p@2", plan=Plan(spans=spans_until({0: 4}, {0: 9}, 1))), "drop it")


def test_states_of_generations() -> None:
    """G8: one is live, one is kept for a rollback, a newer one fills, older ones are of no use."""
    found = generations("p", sight(copy("p@1"), copy("p@2"), copy("p@3"), live=LIVE))
    assert [(one.name, one.state) for one in found] == [
        ("p", "unused"),
        ("p@1", "kept"),
        ("p@2", "live"),
        ("p@3", "filling"),
    ]


def test_a_swap_that_was_not_ended_is_seen() -> None:
    """G8: while the one before still answers, too, the swap is not ended; else it is."""
    why = Hold(held_reason("rebuild", "p", "p@2"))
    assert prepared(why) == "p@2"
    assert prepared(Hold("maintenance")) == prepared(None) == ""
    swap = swapped(Live("p@1", "p", joining="p@2"), "p@2", 7, "ann", "why")
    assert swap == Live("p@2", "p@1", 7, "ann", "why", leaving="p@1")
    assert unended("p", sight(copy("p@2"), live=swap)) == "p@2"
    assert unended("p", sight(copy("p@2"), live=LIVE)) == unended("p", sight(copy("p@2"))) == ""


def test_around_a_swap_two_answer() -> None:
    """G8: who waits for an event is answered by the one before, by the next one, or by both."""
    joining, leaving = Live("p", joining="p@1"), Live("p@1", "p", leaving="p")
    for live in (joining, leaving):
        assert [answers(name, "p", {"p": live}) for name in ("p", "p@1", "p@2")] == [
            True,
            True,
            False,
        ]
    assert [answers(name, "p", {}) for name in ("p", "p@1")] == [True, False]
    assert [answers(name, "p", {"p": Live("p@1", "p")}) for name in ("p", "p@1")] == [False, True]


@given(
    st.dictionaries(st.integers(0, 3), st.integers(0, 50)),
    st.dictionaries(st.integers(0, 3), st.integers(0, 50)),
    st.dictionaries(st.integers(0, 3), st.integers(50, 90), min_size=4, max_size=4),
)
def test_a_plan_ends_and_opens_again(
    then: dict[int, int], heads: dict[int, int], at: dict[int, int]
) -> None:
    """G8: what a copy takes ends at given numbers and no other changes; opened, it is as it was."""
    for plan in (WHOLE, Plan(spans=spans_until(then, heads, 4))):
        short = ended(plan, at)
        assert {p: short.end(p) for p in at} == at
        for p, n in at.items():
            assert not short.takes(p, n + 1)
            assert all(short.takes(p, m) == plan.takes(p, m) for m in range(1, n + 1))
        assert opened(short) == plan


def test_spans_until_leave_out_what_came_between() -> None:
    """G8: up to then, and from the rebuild on; a moment ahead of the log leaves nothing out."""
    found = spans_until({0: 3, 1: 99}, {0: 9, 1: 5}, 3)
    assert found == {
        0: (Span(1, 3), Span(10)),
        1: (Span(1, 5), Span(6)),
        2: (Span(1, 0), Span(1)),
    }


def test_only_a_copy_of_everything_must_be_equal() -> None:
    """G8: what was left out, or is made otherwise, is no reason to refuse a swap."""
    assert comparable(WHOLE, {})
    assert comparable(ended(WHOLE, {0: 4}), {})
    assert not comparable(WHOLE, {"model": "new"})
    assert not comparable(Plan(query=Query(except_users=("m",))), {})
    assert not comparable(Plan(spans=spans_until({0: 1}, {0: 2}, 1)), {})


def test_behind_counts_what_is_missing_only() -> None:
    """Who is ahead in one partition does not make up for another."""
    assert behind({0: 5, 1: 9}, {0: 7, 1: 1, 2: 3}) == 5


Pairs = st.dictionaries(st.text("abc", max_size=3), st.text("xy", max_size=1))


@given(Pairs, Pairs)
def test_digests_are_compared_key_by_key(one: dict[str, str], two: dict[str, str]) -> None:
    """G8: every key of either is looked at once; the first that differ are named, in order."""
    found = told(*compared(iter(sorted(one.items())), iter(sorted(two.items()))))
    keys = one.keys() | two.keys()
    wrong = sorted(key for key in keys if one.get(key) != two.get(key))
    assert (found.keys, found.differing) == (len(keys), len(wrong))
    assert [named.key for named in found.named] == wrong[: len(found.named)]
    assert found.same == (one == two)
    for named in found.named:
        how = "strange" if named.key not in one else "missing" if named.key not in two else ""
        assert named == Difference(named.key, how or "differs")


@given(Pairs, Pairs)
def test_some_keys_are_compared_as_all_are(one: dict[str, str], two: dict[str, str]) -> None:
    """G8: keys that are read again differ as they do in the whole, and in the same way."""
    keys = one.keys() | two.keys()
    held = [{key: state.get(key, "") for key in keys} for state in (one, two)]
    full = [{key: digest for key, digest in state.items() if digest} for state in held]
    whole = compared(iter(sorted(full[0].items())), iter(sorted(full[1].items())))[1]
    assert between(*held) == whole


class Growing:
    """An inspector of two states, of which the second is one step behind at every look."""

    def __init__(self, *moving: str) -> None:
        """Let some keys change at every look."""
        self.looks: list[tuple[str, tuple[str, ...]]] = []
        self._moving = moving
        self._step = 0

    def digest(
        self, provider: str, instance: str, after: str = "", keys: Sequence[str] = ()
    ) -> Page:
        """Return what an instance has now."""
        assert (provider, after) == ("p", "")
        self.looks.append((instance, tuple(keys)))
        self._step += 1
        calm = len(self.looks) > 6
        return Page(
            pairs=tuple(
                (key, f"{0 if key not in self._moving or (calm and key == 'slow') else self._step}")
                for key in keys or ("calm", "fast", "slow")
            )
        )


def test_what_differs_is_read_again_and_nothing_else() -> None:
    """G8: a key that agrees once is done; one that never does is left for a place of both."""
    states: Any = Growing("fast", "slow")
    one = Comparison(states, "p", "p", "p@1")
    keys, differing = one.whole()
    assert (keys, sorted(differing)) == (3, ["fast", "slow"])
    assert one.rounds(differing, lambda: None) == {"fast": "differs"}
    asked = [keys for _, keys in states.looks[2:]]
    assert asked[:6] == [("fast", "slow")] * 6
    assert asked[6:] == [("fast",)] * 6
    assert Comparison(Growing(), "p", "p", "p@1").now().same  # type: ignore[arg-type]
