"""Sessions are shown under the ones they came from."""

from memorybus.events import Envelope, Scope, SessionRef, SessionStarted, TurnCompleted
from memorybus.lineage.graph import fold
from memorybus_console.views import tree

ANYBODY = Scope()


def told(event, at, session, root="a", parent="", scope=ANYBODY):
    """Return an envelope of a session."""
    return Envelope(
        id=f"{at:032x}",
        key=f"session:{root}",
        scope=scope,
        session=SessionRef(session, root, parent),
        at=at,
        event=event,
    )


LINEAGE = fold(
    [
        told(SessionStarted(title="Lens\x1b[2J"), 1, "a"),
        told(TurnCompleted(user="x"), 2, "a"),
        told(SessionStarted(parent="a", reason="branch"), 3, "b", parent="a"),
        told(SessionStarted(title="Other"), 4, "z", root="z"),
    ]
)


def test_a_branch_stands_below_its_parent():
    """Every session once, each before those that came from it."""
    assert [(depth, node.id) for depth, node in tree.rows(LINEAGE)] == [
        (0, "a"),
        (1, "b"),
        (0, "z"),
    ]


def test_one_session_shows_its_whole_tree():
    """Whichever session of a tree is named, the tree is shown, and no other."""
    assert [node.id for _, node in tree.rows(LINEAGE, "b")] == ["a", "b"]
    assert tree.rows(LINEAGE, "nobody") == []


def test_everybodys_session_of_an_id_is_shown():
    """An id that several people's sessions have shows the trees of all, and says whose each is."""
    scopes = (Scope(user="ann"), Scope(user="ben", workspace="boat\x1b"))
    events = [told(SessionStarted(), at, "a", scope=scope) for at, scope in enumerate(scopes, 1)]
    found = list(map(tree.session_row, tree.rows(fold(events), "a")))

    assert [row.user for row in found] == ["ann", "ben"]
    assert [tree.tree_line(row).plain.split("  ")[-1] for row in found] == [
        "ann ↔ default",
        "ben ↔ default in boat\\x1b",
    ]


def test_a_line_tells_what_is_known_and_steers_nothing():
    """Indent, id, reason, title, turns; hostile titles are made harmless."""
    first, second, _ = (tree.tree_line(tree.session_row(row)).plain for row in tree.rows(LINEAGE))

    assert first == "a  start  Lens\\x1b[2J  1 turn, 1970-01-01 00:00  default ↔ default"
    assert second.startswith("└─ b  branch  0 turns")
