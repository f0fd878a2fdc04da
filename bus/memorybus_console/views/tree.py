"""Shows sessions as an indented tree."""

from collections.abc import Iterator
from typing import Any, TypedDict

from memorybus.lineage.graph import Lineage, Node
from memorybus.text.display import count_text, iso
from rich.text import Text

from memorybus_console.views.safe import one_line

TreeRow = tuple[int, Node]
"""A session and its depth in the tree."""


class SessionRow(TypedDict):
    """A session, and the one it came from."""

    session: str
    agent: str
    user: str
    workspace: str
    depth: int
    parent: str | None
    root: str
    reason: str | None
    title: str
    turns: int
    epoch: int
    started_at: str | None
    last_at: str | None
    ended: bool
    links: list[str]


def rows(lineage: Lineage, session: str | None = None) -> list[TreeRow]:
    """Return the sessions, each before those that came from it.

    Args:
        lineage: the graph.
        session: only the trees that contain a session with this id, of any user.
    """
    if session is None:
        return list(lineage.walk())
    trees = (tree for tree in _trees(lineage) if any(node.id == session for _, node in tree))
    return [row for tree in trees for row in tree]


def _trees(lineage: Lineage) -> Iterator[list[TreeRow]]:
    tree: list[TreeRow] = []
    for depth, node in lineage.walk():
        if depth == 0 and tree:
            yield tree
            tree = []
        tree.append((depth, node))
    if tree:
        yield tree


def session_json(row: TreeRow) -> dict[str, Any]:
    """Return a session as ``--json`` shows it; times are ISO 8601 in UTC, null if unknown."""
    depth, node = row
    return {
        "session": node.id,
        "agent": node.identity.agent,
        "user": node.identity.user,
        "workspace": node.identity.workspace,
        "depth": depth,
        "parent": node.parent or None,
        "root": node.root,
        "reason": node.origin.reason or None,
        "title": node.titled[2],
        "turns": node.turns,
        "epoch": node.epoch,
        "started_at": iso(node.started_at),
        "last_at": iso(node.last_at),
        "ended": node.ended,
        "links": sorted(node.links),
    }


def tree_line(row: TreeRow) -> Text:
    """Return a session as a line, indented below its parent; a root also names its owner."""
    depth, node = row
    began = (iso(node.started_at) or "-")[:16].replace("T", " ")
    return Text.assemble(
        (f"{'   ' * (depth - 1)}└─ " if depth else "", "dim"),
        (one_line(node.id), "bold"),
        (f"  {one_line(node.origin.reason)}" if node.origin.reason else "", "magenta"),
        f"  {one_line(node.titled[2], 48)}" if node.titled[2] else "",
        (f"  after {one_line(', '.join(sorted(node.links)))}" if node.links else "", "dim"),
        (f"  {count_text(node.turns, 'turn')}, {began}{', ended' if node.ended else ''}", "dim"),
        ("" if depth else f"  {_owner_text(node)}", "dim"),
    )


def _owner_text(node: Node) -> str:
    agent, user, workspace, _ = node.identity
    return one_line(f"of {agent} with {user}{f' in {workspace}' if workspace else ''}")
