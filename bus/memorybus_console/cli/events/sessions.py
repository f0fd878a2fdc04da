"""``memorybus sessions``: which session each session came from, and why."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import DEFAULT, Common
from memorybus_console.result import Presentation, Remark, unread_notes

if TYPE_CHECKING:
    from memorybus_console.views.tree import SessionRow


@shown
def run_sessions_tree(
    session: Annotated[
        str | None,
        Parameter(help="Only the trees that contain this session id, of every user."),
    ] = None,
    /,
    *,
    show_all: Annotated[
        bool, Parameter(name="--all", negative="", help="Show the sessions of `doctor`, too.")
    ] = False,
    common: Common = DEFAULT,
) -> "Presentation[list[SessionRow]]":
    """Show sessions as a tree: which one each came from, and why.

    Exit code 1 if a part of the past cannot be read.

    For example:

    - `memorybus sessions tree`
    - `memorybus sessions tree chat-17 --json`
    """
    from memorybus.lineage.graph import fold

    from memorybus_console.operations import journal
    from memorybus_console.views import tree

    selection = journal.EventSelection(canaries=show_all or session is not None)
    unread: list[str] = []
    events = journal.scan_events(journal.open_history(common.settings()), selection, unread)
    lineage = fold(event.envelope for event in events)
    rows = list(map(tree.session_row, tree.rows(lineage, session)))
    notes = list(unread_notes(unread))
    if missing := session is not None and not rows:
        notes.append(
            Remark(f"no session {session!r} in the log; see: memorybus sessions tree", "red")
        )
    return Presentation(
        rows, map(tree.tree_line, rows), notes=notes, code=int(missing or bool(unread))
    )
