"""``memorybus sessions``: which session each session came from, and why."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import DEFAULT, INSPECT, Common
from memorybus_console.result import Prints
from memorybus_console.views.output import Output

if TYPE_CHECKING:
    from memorybus_console.views.tree import SessionRow


def register(app: App) -> None:
    """Add this group's commands."""
    sessions = App(
        name="sessions", help="Sessions and how they came from each other.", group=INSPECT
    )
    sessions.command(run_sessions_tree, name="tree")
    app.command(sessions)


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
) -> "Annotated[int, Prints(list[SessionRow])]":
    """Show sessions as a tree: which one each came from, and why.

    Exit code 1 if a part of the past cannot be read.

    For example:

    - `memorybus sessions tree`
    - `memorybus sessions tree chat-17 --json`
    """
    from memorybus.lineage.graph import fold

    from memorybus_console.operations import journal
    from memorybus_console.views import tree

    output, settings = common.output(), common.settings()
    wanted = journal.EventSelection(canaries=show_all or session is not None)
    unread: list[str] = []
    events = journal.scan_events(journal.open_history(settings), wanted, unread)
    lineage = fold(event.envelope for event in events)
    output.note_unread(unread)
    found = tree.rows(lineage, session)
    if output.json:
        output.result([tree.session_json(row) for row in found])
    else:
        for row in found:
            output.show(tree.tree_line(row))
    if not found and session is not None:
        return _no_such_session(output, session)
    return 1 if unread else 0


def _no_such_session(output: Output, session: str) -> int:
    output.note(f"no session {session!r} in the log; see: memorybus sessions tree", "red")
    return 1
