"""The lineage: pure steps from session to session, and a graph that no order of events changes."""

from collections.abc import Callable
from itertools import permutations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.errors import InvalidEvent
from memorybus.events import (
    AnyEvent,
    Delegated,
    Envelope,
    MemoryWritten,
    Reason,
    Scope,
    SessionEnded,
    SessionRef,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
)
from memorybus.lineage.graph import (
    CONTINUING_REASONS,
    Lineage,
    Node,
    branch,
    compress,
    delegate,
    fold,
    follow,
    identity_of,
    reset,
    resume,
    rewind,
    start,
    switch_event,
)
from memorybus.redis.keys import session_key

A = SessionRef(id="a", root="a")
B = SessionRef(id="b", root="a", parent="a", epoch=2)


def envelope(number: int, session: SessionRef, event: AnyEvent, at: int | None = None) -> Envelope:
    """Return the `number`-th event, by default at that many milliseconds."""
    return Envelope(
        id=f"{number:032x}",
        key=session_key(Scope(), session.root),
        scope=Scope(),
        session=session,
        at=number if at is None else at,
        event=event,
    )


def seen(lineage: Lineage) -> list[tuple[int, str]]:
    """Return the tree as depths and ids, in the order of the walk."""
    return [(depth, node.id) for depth, node in lineage.walk()]


def of(lineage: Lineage, session: str) -> Node:
    """Return what is known of a session of the default scope."""
    return lineage.nodes[identity_of(Scope(), session)]


def children(lineage: Lineage, session: str) -> tuple[Node, ...]:
    """Return what came from a session of the default scope."""
    return lineage.children(identity_of(Scope(), session))


# -- steps --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (start("a"), SessionRef("a", "a")),
        (branch(B, "c"), SessionRef("c", "a", "b")),
        (compress(B), SessionRef("b", "a", "a", 3)),
        (compress(B, "b"), SessionRef("b", "a", "a", 3)),
        (compress(B, "c"), SessionRef("c", "a", "b")),
        (resume(B, "b"), B),
        (resume(None, "z"), SessionRef("z", "z")),
        (reset(B, "c"), SessionRef("c", "c")),
        (reset(B, "b"), SessionRef("b", "b", "", 3)),
        (rewind(B), SessionRef("b", "a", "a", 3)),
        (delegate(B, "c"), SessionRef("c", "c", "b")),
    ],
)
def test_where_a_session_goes(after, expected):
    """Each step gives the next place in the lineage: who keeps the root, and who counts anew."""
    assert after == expected


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("start", SessionRef("c", "x", "x", 7)),
        ("branch", branch(B, "c")),
        ("compression", compress(B, "c")),
        ("delegation", delegate(B, "c")),
        ("resume", SessionRef("c", "x", "x", 7)),
        ("reset", SessionRef("c", "c", "", 8)),
        ("rewind", rewind(B)),
    ],
)
def test_a_session_follows_by_its_reason(reason, expected):
    """A switch told by its reason is the step of that name; a known session is resumed as it is."""
    assert follow(B, "c", reason, SessionRef("c", "x", "x", 7)) == expected


@pytest.mark.parametrize(
    "step",
    [
        lambda: start(""),
        lambda: branch(A, ""),
        lambda: branch(A, "a"),
        lambda: compress(A, ""),
        lambda: resume(None, ""),
        lambda: resume(A, "b"),
        lambda: reset(A, ""),
        lambda: delegate(A, ""),
        lambda: delegate(A, "a"),
    ],
)
def test_a_step_to_nowhere_is_refused(step):
    """An empty id, or a session's own where another is needed, is an error."""
    with pytest.raises(InvalidEvent):
        step()


@pytest.mark.parametrize(
    ("after", "reason", "expected"),
    [
        (branch(A, "c"), "branch", SessionSwitched(new_id="c", parent="a", reason="branch")),
        (compress(A), "compression", SessionSwitched(new_id="a", parent="a", reason="compression")),
        (B, "resume", SessionSwitched(new_id="b", parent="a", reason="resume")),
        (
            reset(A, "c"),
            "reset",
            SessionSwitched(new_id="c", parent="a", reason="reset", reset=True),
        ),
        (rewind(A), "rewind", SessionSwitched(new_id="a", reason="rewind", rewound=True)),
    ],
)
def test_what_a_switch_publishes(after, reason, expected):
    """The event names the new session, the one that was left, and how."""
    assert switch_event(A, after, reason) == expected


MOVES: dict[str, Callable[[SessionRef, str], SessionRef]] = {
    "branch": branch,
    "compression": compress,
    "in place": lambda ref, _: compress(ref),
    "rewind": lambda ref, _: rewind(ref),
}
ids = st.sampled_from("abcdef")
steps = st.lists(st.tuples(st.sampled_from(sorted(MOVES)), ids), max_size=12)


@given(steps)
def test_a_conversation_that_goes_on_keeps_its_order_key(moves):
    """Through branches, compressions and rewinds the root, hence the order key, stays (G3)."""
    ref = start("root")
    for number, (move, name) in enumerate(moves):
        before, ref = ref, MOVES[move](ref, f"{name}{number}")
        assert ref.root == "root"
        assert (ref.id, ref.epoch) != (before.id, before.epoch)


def test_what_carries_recall_over():
    """The conversation goes on after a branch, compression, resume or rewind; not after a reset."""
    assert {"branch", "compression", "resume", "rewind"} == CONTINUING_REASONS


# -- the graph ----------------------------------------------------------------------------------

STORY = (
    envelope(1, A, SessionStarted(title="Lisbon")),
    envelope(2, A, TurnCompleted(user="hi")),
    envelope(3, branch(A, "b"), switch_event(A, branch(A, "b"), "branch")),
    envelope(4, A, Delegated(child_session="d")),
    envelope(5, delegate(A, "d"), SessionStarted(title="sub")),
    envelope(6, A, SessionEnded()),
)


def test_a_story_as_a_tree():
    """A branch and a delegation hang under their parent; facts land in their sessions."""
    lineage = fold(STORY)
    a, b, d = (of(lineage, name) for name in "abd")

    assert seen(lineage) == [(0, "a"), (1, "b"), (1, "d")]
    assert (a.root, b.root, d.root) == ("a", "a", "d")
    assert (a.origin.reason, b.origin.reason, d.origin.reason) == ("start", "branch", "delegation")
    assert (a.titled[2], a.turns, a.started_at, a.last_at, a.ended) == ("Lisbon", 1, 1, 6, True)
    assert (b.parent, b.ended, d.titled[2]) == ("a", False, "sub")
    assert (lineage.roots(), children(lineage, "a"), children(lineage, "z")) == ((a,), (b, d), ())


def test_every_order_of_a_story_tells_the_same():
    """All 720 orders of arrival give the same graph (G3 orders one key only)."""
    expected = fold(STORY)

    for order in permutations(STORY):
        assert fold(order).nodes == expected.nodes


def test_sessions_of_one_id_are_as_many_as_have_it():
    """G3: of two people's sessions of one id each has its own tree; the platform makes no other."""
    ben = Scope(user="ben")
    theirs = [msgspec.structs.replace(one, scope=ben, id=f"{one.at:030x}be") for one in STORY[:2]]
    again = msgspec.structs.replace(STORY[1], scope=Scope(platform="phone"), id="f" * 32)
    lineage = fold([*STORY, *theirs, again])

    other = lineage.nodes[identity_of(ben, "a")]
    assert (of(lineage, "a").turns, other.turns) == (2, 1)
    assert len(lineage.roots()) == 2
    assert (len(children(lineage, "a")), lineage.children(other.identity)) == (2, ())


def test_a_turn_after_the_end_reopens_a_session():
    """Hosts end a session at every compression: an end that something follows is none."""
    story = [envelope(1, A, SessionStarted()), envelope(2, A, SessionEnded())]

    assert of(fold(story), "a").ended
    assert not of(fold([*story, envelope(3, A, TurnCompleted())]), "a").ended


def test_a_resume_links_two_roots():
    """The resumed session stays in its own tree and remembers which one was left for it."""
    old = SessionRef("old", "old", epoch=1)
    lineage = fold(
        [
            envelope(1, old, SessionStarted()),
            envelope(2, A, SessionStarted()),
            envelope(3, old, switch_event(A, resume(old, "old"), "resume")),
        ]
    )

    assert seen(lineage) == [(0, "old"), (0, "a")]
    assert of(lineage, "old").links == {"a"}
    assert of(lineage, "old").origin.reason == "start"


def test_a_reset_begins_a_tree_of_its_own():
    """A reset does not continue: the new session is a root, linked to the one that was left."""
    fresh = reset(A, "n")
    lineage = fold(
        [envelope(1, A, SessionStarted()), envelope(2, fresh, switch_event(A, fresh, "reset"))]
    )

    assert seen(lineage) == [(0, "a"), (0, "n")]
    assert (of(lineage, "n").origin.reason, of(lineage, "n").links) == ("reset", frozenset("a"))


def test_compressions_and_rewinds_in_place_keep_their_origin():
    """In place only the epoch grows; a compression to a new id is a child."""
    once, twice = compress(B), rewind(compress(B))
    child = compress(twice, "c")
    lineage = fold(
        [
            envelope(1, A, SessionStarted()),
            envelope(2, B, switch_event(A, B, "branch")),
            envelope(3, once, switch_event(B, once, "compression")),
            envelope(4, twice, switch_event(once, twice, "rewind")),
            envelope(5, child, switch_event(twice, child, "compression")),
        ]
    )

    assert seen(lineage) == [(0, "a"), (1, "b"), (2, "c")]
    assert (of(lineage, "b").origin.reason, of(lineage, "b").epoch) == ("branch", 4)
    assert of(lineage, "c").origin.reason == "compression"


def test_a_child_that_was_not_told_is_placed_by_its_parent():
    """A sub-agent that starts by its own account from nothing hangs under who delegated to it."""
    child = start("d")
    lineage = fold(
        [envelope(1, child, SessionStarted()), envelope(2, A, Delegated(child_session="d"))]
    )

    assert seen(lineage) == [(0, "a"), (1, "d")]


def test_an_undo_without_a_reason_links_nothing():
    """Hermes tells an undo without reason and parent: the session neither moves nor links."""
    undo = SessionSwitched(new_id="a", rewound=True)
    lineage = fold([envelope(1, A, SessionStarted()), envelope(2, rewind(A), undo)])

    assert seen(lineage) == [(0, "a")]
    assert (of(lineage, "a").links, of(lineage, "a").epoch) == (frozenset(), 1)


@pytest.mark.parametrize(
    ("earlier", "origin", "reason"),
    [
        (switch_event(A, B, "resume"), switch_event(A, B, "branch"), "branch"),
        (switch_event(B, compress(B), "compression"), SessionStarted(), "start"),
        (switch_event(B, rewind(B), "rewind"), switch_event(A, B, "branch"), "branch"),
        (SessionStarted(), switch_event(A, B, "branch"), "branch"),
        (SessionStarted(parent="a", reason="resume"), SessionStarted(), "start"),
    ],
)
def test_the_best_witness_of_an_origin_is_believed(earlier, origin, reason):
    """Clocks of two hosts differ: an event that only goes on never hides how it began."""
    lineage = fold([envelope(1, B, earlier), envelope(2, B, origin)])

    assert of(lineage, "b").origin.reason == reason


@pytest.mark.parametrize(
    ("refs", "expected"),
    [
        ([SessionRef("b", "a", "a")], [(0, "b")]),
        ([SessionRef("a", "a", "a")], [(0, "a")]),
        ([SessionRef("a", "a", "b"), SessionRef("b", "a", "a")], [(0, "a"), (1, "b")]),
        (
            [SessionRef("z", "a", "y"), SessionRef("y", "a", "x"), SessionRef("x", "a", "y")],
            [(0, "y"), (1, "z"), (1, "x")],
        ),
        ([SessionRef("", "a", "a")], []),
        ([SessionRef("a", "", "")], [(0, "a")]),
    ],
    ids=["missing parent", "own parent", "circle", "tail of a circle", "no id", "no root"],
)
def test_hostile_parents_make_a_tree_all_the_same(refs, expected):
    """Unknown parents, a session's own id and circles are cut, at the oldest session."""
    lineage = fold(envelope(number, ref, TurnCompleted()) for number, ref in enumerate(refs, 1))

    assert seen(lineage) == expected
    assert all(node.root for node in lineage.nodes.values())


@pytest.mark.timeout(180)  # it computes
def test_a_long_lineage_is_walked_without_recursion():
    """Ten thousand compressions in a row are a tree that deep."""
    refs = [start("0")]
    for number in range(1, 10_000):
        refs.append(compress(refs[-1], str(number)))
    lineage = fold(envelope(n, ref, TurnCompleted()) for n, ref in enumerate(refs))

    assert [depth for depth, _ in lineage.walk()] == list(range(10_000))


maybe_ids = st.sampled_from(["a", "b", "c", ""])
reasons: st.SearchStrategy[Reason] = st.sampled_from(
    ["start", "branch", "compression", "resume", "reset", "rewind", "delegation"]
)
events: st.SearchStrategy[AnyEvent] = st.one_of(
    st.builds(
        SessionStarted, parent=maybe_ids, reason=reasons, title=st.sampled_from(["", "x", "y"])
    ),
    st.builds(SessionSwitched, new_id=maybe_ids, parent=maybe_ids, reason=reasons),
    st.builds(Delegated, child_session=maybe_ids),
    st.just(TurnCompleted()),
    st.just(SessionEnded()),
    st.just(MemoryWritten(action="add")),
)
refs = st.builds(
    SessionRef, id=maybe_ids, root=maybe_ids, parent=maybe_ids, epoch=st.integers(0, 3)
)
histories = st.lists(st.tuples(refs, events, st.integers(-1, 4)), max_size=14).map(
    lambda told: [envelope(n, ref, event, at) for n, (ref, event, at) in enumerate(told)]
)


@given(histories, st.randoms())
def test_neither_order_nor_repetition_matters(history, rng):
    """Events in any order, some of them twice, tell what they tell once and in order (G2)."""
    shuffled = history + rng.choices(history, k=3) if history else []
    rng.shuffle(shuffled)

    assert fold(shuffled).nodes == fold(history).nodes
    assert seen(fold(shuffled)) == seen(fold(history))


@given(histories)
def test_the_walk_visits_every_session_once(history):
    """Whatever is claimed, the tree has no circle and no session is lost or shown twice."""
    lineage = fold(history)
    walked = seen(lineage)
    depths = {name: depth for depth, name in walked}

    assert sorted(name for _, name in walked) == sorted(one.session for one in lineage.nodes)
    for name, depth in depths.items():
        assert all(depths[child.id] == depth + 1 for child in children(lineage, name))
    assert {node.id for node in lineage.roots()} == {name for name, d in depths.items() if d == 0}
