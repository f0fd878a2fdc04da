"""Shows sessions as an indented tree."""

from collections.abc import Iterator

import msgspec
from memorybus.lineage.graph import Lineage, Node
from memorybus.text.display import count_text, iso, one_line
from rich.text import Text

TreeRow = tuple[int, Node]  # a session and its depth in the tree


class SessionRow(msgspec.Struct, frozen=True):
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


def session_row(row: TreeRow) -> SessionRow:
    """Return a session as ``--json`` shows it; times are ISO 8601 in UTC, null if unknown."""
    depth, node = row
    return SessionRow(
        session=node.id,
        agent=node.identity.agent,
        user=node.identity.user,
        workspace=node.identity.workspace,
        depth=depth,
        parent=node.parent or None,
        root=node.root,
        reason=node.origin.reason or None,
        title=node.titled[2],
        turns=node.turns,
        epoch=node.epoch,
        started_at=iso(node.started_at),
        last_at=iso(node.last_at),
        ended=node.ended,
        links=sorted(node.links),
    )


def tree_line(row: SessionRow) -> Text:
    """Return a session as a line, indented below its parent; a root also names its owner."""
    began = (row.started_at or "-")[:16].replace("T", " ")
    workspace = f" in {row.workspace}" if row.workspace else ""
    owner = one_line(f"{row.user} ↔ {row.agent}{workspace}")
    return Text.assemble(
        (f"{'   ' * (row.depth - 1)}└─ " if row.depth else "", "dim"),
        (one_line(row.session), "bold"),
        (f"  {one_line(row.reason)}" if row.reason else "", "magenta"),
        f"  {one_line(row.title, 48)}" if row.title else "",
        (f"  after {one_line(', '.join(row.links))}" if row.links else "", "dim"),
        (f"  {count_text(row.turns, 'turn')}, {began}{', ended' if row.ended else ''}", "dim"),
        ("" if row.depth else f"  {owner}", "dim"),
    )
