"""Generations: names, states, what goes on after a kill, where a plan ends; as tables (G8)."""

from typing import Any

import pytest
from helpers.providers.recording import Blind
from hypothesis import given
from hypothesis import strategies as st
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.jobs.inspect import DigestPage, ReadDigest
from memorybus.processes.reports import InstanceDescription
from memorybus.query.query import EVERYTHING, Query
from memorybus.query.ranges import WHOLE, NumberRange, Plan
from memorybus.registry.instances import (
    CopyRequest,
    Instance,
    InstancePause,
    InstancesView,
    Live,
    is_live_instance,
)
from memorybus_console.operations.copies.generations import (
    check_same_request,
    command_to_finish_swap,
    describe_remedy,
    describe_shared_state,
    generations,
    is_dropped,
    join_exclusions,
    live_after_drop,
    live_after_swap,
    must_equal,
    needs_only_finish,
    next_name,
    owner_of,
    plan_ending_at,
    plan_up_to,
    plan_without_end,
    plan_without_interval,
    unfinished_copy,
    unfinished_swap,
)
from memorybus_console.operations.rebuild.comparison import (
    KEYS_PER_REQUEST,
    MAX_NAMED,
    Comparison,
    Difference,
    compare_pairs,
    differing_keys,
    summarize,
)
from memorybus_workers.provider_commands.offers import describe

LIVE = Live("p@2", "p@1")


def copy(name: str, **more: Any) -> Instance:
    """Return a generation of ``p``."""
    return Instance(**{"name": name, "provider": "p", "purpose": "rebuild", **more})


def view(
    *copies: Instance, live: Live | None = None, pauses: dict[str, InstancePause] | None = None
) -> InstancesView:
    """Return the three hashes."""
    lives = {"p": live} if live else {}
    return InstancesView({one.name: one for one in copies}, lives, pauses or {})


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        (view(), "p@1"),
        (view(copy("p@1")), "p@2"),
        (view(live=LIVE), "p@3"),
        (view(copy("p.verify@7", purpose="verify")), "p@8"),
        (view(live=Live("p", numbered=4)), "p@5"),
        (view(Instance(name="other", provider="p")), "p@1"),
    ],
)
def test_a_number_is_never_given_twice(seen, name):
    """G8: the next generation's number is above all that are known of."""
    assert next_name("p", seen) == name


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        (view(), None),
        (view(copy("p@1")), "p@1"),
        (view(copy("p@1", dropped=True)), None),
        (view(copy("p@1", purpose="replay")), None),
        (view(copy("p@1"), copy("p@2"), live=LIVE), None),
        (view(copy("p@1"), copy("p@2"), copy("p@3"), live=LIVE), "p@3"),
        (view(copy("p@1"), copy("p@2"), live=Live("p", "p@2")), None),
    ],
)
def test_what_was_begun_is_found_again(seen, name):
    """G8: the same command goes on with the newest copy that neither serves nor did."""
    found = unfinished_copy("p", "rebuild", seen)
    assert (found.name if found else None) == name


def test_what_was_dropped_is_known_as_such():
    """G8: the first generation counts as dropped by its hold, unless it serves or is kept.

    What an operator writes as the reason of a pause says nothing of that.
    """
    why = {"p": InstancePause("p@1 serves p", state="dropped")}
    for live, gone in ((Live("p@1"), True), (Live("p@1", "p"), False), (Live("p"), False)):
        seen = view(copy("p@1"), live=live, pauses=why)
        assert is_dropped("p", seen) == gone
        assert (generations("p", seen)[0].state == "dropped") == gone
    for reason in ("maintenance", "dropped: p@1 serves p", "removed: x"):
        assert not is_dropped("p", view(live=Live("p@1"), pauses={"p": InstancePause(reason)}))
    assert is_dropped("p@1", view(copy("p@1", dropped=True)))


def test_after_a_drop_nothing_goes_back():
    """G8: the way back goes with the generation that is kept, and no number comes again."""
    known = Live("p@2", "p@1", numbered=1)
    assert live_after_drop(known, ("p@3",)) == Live("p@2", "p@1", numbered=3)
    assert live_after_drop(known, ("p", "p@1")) == Live("p@2", numbered=1)
    assert (
        live_after_swap(live_after_drop(known, ("p@3",)), "p@4", 0, "", "", back=True).numbered == 3
    )


@pytest.mark.parametrize(
    ("live", "words", "ends"),
    [
        (Live("p@1", "p", leaving="p"), CopyRequest(until="7", live="p@1"), True),
        (Live("p@1", "p", leaving="p"), CopyRequest(live="p@1"), True),
        (Live("p@1", "p", leaving="p"), CopyRequest(until="8", live="p@1"), False),
        (Live("p@1", "p", leaving="p", back=True), CopyRequest(live="p@1"), False),
        (Live("p@1", "p"), CopyRequest(live="p@1"), False),
        (Live("p", "p@1", leaving="p@1"), CopyRequest(live="p"), False),
    ],
)
def test_a_swap_that_was_cut_short_is_ended_alone(live, words, ends):
    """G8: only the same command, or one that wants nothing more, ends a swap and does no more."""
    seen = view(copy("p@1", asked=CopyRequest(until="7", live="p")), live=live)
    assert needs_only_finish(copy("p@2", asked=words), seen) == ends
    if live.leaving:
        assert ("--rollback" in command_to_finish_swap("p", seen)) == live.back


def test_another_plan_does_not_go_on_with_it():
    """G8: the same words go on, whatever came of them; for others it is told how to drop it."""
    words = CopyRequest(query=Query(except_users=("m",)), live="p")
    begun = copy("p@1", asked=words)
    grown = Plan(spans={0: (NumberRange(5),)})
    check_same_request(begun, copy("p@2", asked=words, plan=grown), "drop it")
    others = (None, CopyRequest(live="p"), CopyRequest(query=words.query, live="p@1"))
    for other in (copy("p@2", asked=asked) for asked in others):
        with pytest.raises(ConfigError, match="drop it"):
            check_same_request(begun, other, "drop it")
    with pytest.raises(ConfigError, match="drop it"):
        check_same_request(copy("p@1"), copy("p@2"), "drop it")
    with pytest.raises(ConfigError, match="p@1 serves now: it cannot continue; drop it"):
        check_same_request(begun, copy("p@2", asked=others[-1]), "drop it")


def test_states_of_generations():
    """G8: one is live, one is kept for a rollback, a newer one fills, older ones are of no use."""
    found = generations("p", view(copy("p@1"), copy("p@2"), copy("p@3"), live=LIVE))
    assert [(one.name, one.state) for one in found] == [
        ("p", "unused"),
        ("p@1", "kept"),
        ("p@2", "live"),
        ("p@3", "filling"),
    ]


def test_a_swap_that_was_not_ended_is_seen():
    """G8: while the one before still answers, too, the swap is not ended; else it is."""
    swap = live_after_swap(Live("p@1", "p"), "p@2", 7, "ann", "why")
    assert swap == Live("p@2", "p@1", 7, "ann", "why", leaving="p@1")
    assert unfinished_swap("p", view(copy("p@2"), live=swap)) == "p@2"
    assert (
        unfinished_swap("p", view(copy("p@2"), live=LIVE))
        == unfinished_swap("p", view(copy("p@2")))
        == ""
    )


def test_one_instance_answers():
    """G8: who waits for an event is answered by the instance that serves, also before its end."""
    assert [is_live_instance(name, "p", {}) for name in ("p", "p@1")] == [True, False]
    for live in (Live("p@1", "p"), Live("p@1", "p", leaving="p")):
        assert [is_live_instance(name, "p", {"p": live}) for name in ("p", "p@1")] == [False, True]


@given(
    st.dictionaries(st.integers(0, 3), st.integers(0, 50)),
    st.dictionaries(st.integers(0, 3), st.integers(0, 50)),
    st.dictionaries(st.integers(0, 3), st.integers(50, 90), min_size=4, max_size=4),
)
def test_a_plan_ends_and_opens_again(then, heads, at):
    """G8: what a copy takes ends at given numbers and no other changes; opened, it is as it was."""
    for plan in (WHOLE, plan_without_interval(WHOLE, then, heads, 4)):
        short = plan_ending_at(plan, at)
        assert {p: short.end(p) for p in at} == at
        for p, n in at.items():
            assert not short.takes(p, n + 1)
            assert all(short.takes(p, m) == plan.takes(p, m) for m in range(1, n + 1))
        assert plan_without_end(short) == plan


def test_a_moment_leaves_out_what_came_between():
    """G8: up to then, and from the rebuild on; a moment ahead of the log leaves nothing out."""
    found = plan_without_interval(WHOLE, {0: 3, 1: 99}, {0: 9, 1: 5}, 3)
    assert found.spans == {
        0: (NumberRange(1, 3), NumberRange(10)),
        1: (NumberRange(1, 5), NumberRange(6)),
        2: (NumberRange(1, 0), NumberRange(1)),
    }


Lanes = st.lists(st.integers(0, 30), min_size=2, max_size=2).map(lambda ns: dict(enumerate(ns)))


@given(Lanes, Lanes, Lanes)
def test_a_gap_stays_a_gap(first, then, more):
    """G8: a state with a gap, taken up to a moment again, holds nothing that it did not hold."""
    heads = {p: n + more[p] for p, n in first.items()}
    gap = plan_without_interval(WHOLE, then, first, 2)
    again = plan_without_interval(gap, then, heads, 2)
    for p, head in heads.items():
        known = min(then[p], head)
        wanted = {n for n in range(1, known + 1) if gap.takes(p, n)}
        assert {n for n in range(1, head + 1) if again.takes(p, n)} == wanted
        assert again.takes(p, head + 1)


@given(Lanes, Lanes, Lanes)
def test_the_past_of_a_gap_has_it_too(first, heads, then):
    """G8: what is compared up to a moment is what was taken up to it, and it ends."""
    gap = plan_without_interval(WHOLE, first, heads, 2)
    found = plan_up_to(gap, then, 2)
    for p, n in then.items():
        assert all(found.takes(p, m) == (m <= n and gap.takes(p, m)) for m in range(1, 70))
        assert (found.end(p) or 0) <= n


def test_what_is_left_out_adds_up():
    """G8: what either of two queries leaves out is left out, each word once."""
    ann, both = Query(except_users=("ann",)), Query(except_users=("ann", "mallory"))
    assert join_exclusions(ann, both) == join_exclusions(both, ann) == both
    assert join_exclusions(ann, EVERYTHING) == join_exclusions(EVERYTHING, ann) == ann


def test_what_takes_the_same_must_be_equal():
    """G8: a copy that takes what the live one took, made alike, is compared; others are not."""
    without, gap = (
        Plan(query=Query(except_users=("m",))),
        plan_without_interval(WHOLE, {0: 1}, {0: 2}, 1),
    )
    states = [copy("p@1", plan=plan) for plan in (WHOLE, without, gap)]
    states.append(copy("p@1", options={"model": "new"}))
    for one in states:
        assert [must_equal(one, other) for other in states].count(True) == 1
        short = copy("p@2", plan=plan_ending_at(one.plan, {0: 4}), options=one.options)
        assert must_equal(short, one)


Pairs = st.dictionaries(st.text("abc", max_size=3), st.text("xy", max_size=1))


@given(Pairs, Pairs)
def test_digests_are_compared_key_by_key(one, two):
    """G8: every key of either is looked at once; the first that differ are named, in order."""
    found = summarize(*compare_pairs(iter(sorted(one.items())), iter(sorted(two.items()))))
    keys = one.keys() | two.keys()
    wrong = sorted(key for key in keys if one.get(key) != two.get(key))
    assert (found.keys, found.differing) == (len(keys), len(wrong))
    assert [named.key for named in found.named] == wrong[: len(found.named)]
    assert found.same == (one == two)
    for named in found.named:
        how = "strange" if named.key not in one else "missing" if named.key not in two else ""
        assert named == Difference(named.key, how or "differs")


@given(Pairs, Pairs)
def test_some_keys_are_compared_as_all_are(one, two):
    """G8: keys that are read again differ as they do in the whole, and in the same way."""
    keys = one.keys() | two.keys()
    pauses = [{key: state.get(key, "") for key in keys} for state in (one, two)]
    full = [{key: digest for key, digest in state.items() if digest} for state in pauses]
    whole = compare_pairs(iter(sorted(full[0].items())), iter(sorted(full[1].items())))[1]
    assert differing_keys(*pauses) == whole


class States:
    """An inspector of two states; keys of the second may be a step behind at the first look."""

    def __init__(self, first: dict[str, str], second: dict[str, str], *late: str) -> None:
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self._states = {"p": first, "p@1": second}
        self._late = late

    def ask(self, provider: str, instance: str, question: ReadDigest) -> DigestPage:
        """Return what an instance has now."""
        assert (provider, question.after) == ("p", "")
        keys = question.keys
        self.asked.append((instance, keys))
        state = self._states[instance]
        if keys:
            return DigestPage(pairs=tuple((key, state.get(key, "")) for key in keys))
        late = self._late if instance == "p@1" else ()
        return DigestPage(
            pairs=tuple((k, "late" if k in late else v) for k, v in sorted(state.items()))
        )


def test_what_differs_is_read_again_and_nothing_else():
    """G8: a key that agrees while both go on is done; the others are read again in the pause."""
    state = {"calm": "1", "late": "1", "wrong": "1"}
    states: Any = States(state, state | {"wrong": "2"}, "late")
    one = Comparison(states, "p", "p", "p@1")
    keys, differing = one.compare_all()
    assert (keys, sorted(differing)) == (3, ["late", "wrong"])
    assert one.compare_again(differing) == {"wrong": "differs"}
    assert states.asked[2:] == [("p", ("late", "wrong")), ("p@1", ("late", "wrong"))]
    assert Comparison(States(state, state), "p", "p", "p@1").compare_now().same


def test_a_pause_is_not_drawn_out_by_a_state_that_is_wrong():
    """G8: as soon as more keys differ than are named the rest is counted without being read."""
    state = {f"{number:04}": "1" for number in range(4 * KEYS_PER_REQUEST)}
    states: Any = States(state, dict.fromkeys(state, "2"))
    one = Comparison(states, "p", "p", "p@1")
    _, differing = one.compare_all()
    assert one.compare_again(differing) == differing
    assert len(states.asked) == 4, "a page of each is enough"
    assert len(differing) > MAX_NAMED


LOCAL = InstanceDescription("kind", "keyed", "local", True, {})
SHARED = InstanceDescription(
    "kind", "keyed", "shared", False, {"collection": "main"}, ("collection", "model")
)
UNNAMED = InstanceDescription("kind", "keyed", "shared", False, {})


def named_copy(name: str, **options: object) -> Instance:
    """Return a copy of ``p``."""
    return Instance(name=name, provider="p", options=options)


class Defaulted(Blind):
    """A shared one whose schema says where it lies if nobody else does."""

    fresh_by_home = False
    fresh_options = ("collection",)

    @classmethod
    def get_config_schema(cls) -> list[dict[str, str]]:
        """Return the one option."""
        return [{"key": "collection", "description": "where", "default": "a"}]


KIND = {"kind": f"{__name__}:Defaulted"}

SEEN = (
    named_copy("p@1", collection="two", model="new"),
    Instance(name="gone", provider="p", options={"collection": 3}, dropped=True),
    Instance(name="q@1", provider="q", options={"collection": "four"}),
)


@pytest.mark.parametrize(
    ("what", "options", "owner"),
    [
        (LOCAL, {}, ""),
        (SHARED, {}, "p"),
        (SHARED, {"model": "new"}, "p"),
        (SHARED, {"collection": "main"}, "p"),
        (SHARED, {"collection": "two"}, "p@1"),
        (SHARED, {"collection": "3"}, "gone"),
        (SHARED, {"collection": "four"}, ""),
        (UNNAMED, {"model": "new"}, "p"),
    ],
)
def test_a_place_is_compared_with_every_other(what, options, owner):
    """G8: to name the option is not enough: its value must be none that an instance has."""
    view = InstancesView({one.name: one for one in SEEN})
    assert owner_of(what, named_copy("new", **options), view, {}) == owner


def test_a_copy_is_not_its_own_rival():
    """G8: what is asked for again is compared with the others only."""
    assert owner_of(SHARED, SEEN[0], InstancesView({one.name: one for one in SEEN}), {}) == ""


def test_a_refusal_says_what_to_do():
    """G8: who is refused is told the option, or, where there is none, another way."""
    said = describe_shared_state(named_copy("new"), "p@1")
    assert said == "a copy of p would write where p@1 does: its state is shared"
    assert "--set collection=…" in describe_remedy(SHARED, "new")
    assert "provider setup" in describe_remedy(UNNAMED, "new")


def test_where_an_instance_lies_is_told():
    """G8: the place is the settings' own, whatever the copy is given."""
    tables = {"rec": {"kind": "helpers.providers.recording:KeyedShared", "collection": "one"}}
    found = describe(Settings(provider=tables), "rec", "copy", {"collection": "two"})
    assert (found.by_home, found.place) == (False, {"collection": "one"})
    assert describe(Settings(provider={"rec": KIND}), "rec", "copy", {}).place == {
        "collection": "a"
    }
    assert describe(Settings(providers=("builtin",)), "builtin", "copy", {}).by_home
