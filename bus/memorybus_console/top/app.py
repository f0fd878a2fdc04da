"""The screen: four views of the bus, and the keys."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Literal

from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.text.redact import masked
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import ContentSwitcher, DataTable, Footer, Input, Static

from memorybus_console.actions.action import Action
from memorybus_console.actions.dead_letters import DiscardLetters, RetryLetters
from memorybus_console.actions.providers import PauseProvider, ResumeProvider
from memorybus_console.top import rows
from memorybus_console.top.acts import ActQuestion, Acts
from memorybus_console.top.dialogs import HelpDialog, ReasonDialog
from memorybus_console.top.grid import LiveTable
from memorybus_console.top.head import head_line
from memorybus_console.top.reader import Reader, Snapshot, TopView
from memorybus_console.views.safe import one_line
from memorybus_console.views.status import finding_line

VIEWS: Final[tuple[TopView, ...]] = ("overview", "lanes", "letters", "tail")
_TITLES: Final = ("1 Overview", "2 Lanes", "3 Dead letters", "4 Tail")
_MESSAGE_WIDTH: Final = 300
"""The most characters of a message that is shown for a moment."""

_CSS: Final = """
#head, #tabs { height: 1; padding: 0 1; }
#tabs { color: $text-muted; }
ContentSwitcher { height: 1fr; }
#overview LiveTable { height: auto; max-height: 60%; }
#findings { height: 1fr; padding: 1 1 0 1; }
#letters LiveTable { height: 1fr; }
#detail { height: 4; padding: 0 1; border-top: solid $surface; }
#filter { dock: bottom; height: 1; border: none; display: none; margin-bottom: 1; }
ModalScreen { align: center middle; }
#box { width: 72; max-width: 95%; height: auto; padding: 1 2; border: round $primary; }
#box { background: $surface; }
#title { margin-bottom: 1; }
#why { margin-top: 1; }
"""


class TopApp(App[None]):
    """The live view of a bus.

    Args:
        operator: who acts, for the record.
    """

    CSS = _CSS
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit", "Quit", priority=False),
        Binding("question_mark", "help", "Keys", key_display="?"),
        *(
            Binding(str(number), f"show({view!r})", show=False)
            for number, view in enumerate(VIEWS, 1)
        ),
        Binding("tab", "turn(1)", show=False, priority=True),
        Binding("shift+tab", "turn(-1)", show=False, priority=True),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("escape", "all", show=False),
        Binding("g", "group", "Group"),
        Binding("p", "pause", "Pause"),
        Binding("r", "settle('retry')", "Retry"),
        Binding("d", "settle('discard')", "Discard"),
        Binding("space", "hold", "Hold"),
    ]

    class SnapshotArrived(Message):
        """The reader has read the bus."""

        def __init__(self, snapshot: Snapshot) -> None:
            super().__init__()
            self.snapshot = snapshot

    class ActPlanned(Message):
        """The plan of an action is known."""

        def __init__(self, question: ActQuestion) -> None:
            super().__init__()
            self.question = question

    class ActEnded(Message):
        """An action was carried out, or failed."""

        def __init__(self, text: str, *, failed: bool) -> None:
            super().__init__()
            self.text = text
            self.failed = failed

    def __init__(self, settings: Settings, operator: str, clock: Clock = SYSTEM) -> None:
        super().__init__()
        self._settings = settings
        self._clock = clock
        self._reader = Reader(settings, self._post_snapshot, clock)
        self._acts = Acts(settings, operator, clock)
        self._snapshot: Snapshot | None = None
        self._snapshot_at = clock.monotonic()
        self._error = ""
        self._provider = ""
        self._words = ""
        self._by_error = False
        self._held = False
        self._busy = False

    # -- views and snapshots -----------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Create the views."""
        yield Static(id="head")
        yield Static(id="tabs")
        with ContentSwitcher(initial="overview"):
            with Vertical(id="overview"):
                yield LiveTable(rows.PROVIDERS, "providers")
                with VerticalScroll(can_focus=False):
                    yield Static(id="findings")
            with Vertical(id="lanes"):
                yield LiveTable(rows.LANES, "all-lanes")
            with Vertical(id="letters"):
                yield LiveTable(rows.LETTERS, "keys")
                yield LiveTable(rows.ERRORS, "errors")
                yield Static(id="detail")
            with Vertical(id="tail"):
                yield LiveTable(rows.EVENTS, "events")
        yield Input(placeholder="rows with these words", id="filter")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Start to read the bus."""
        self.query_one("#errors").display = False
        self._reader.start()
        self.set_interval(1.0, self._tick)
        self.action_show("overview")

    def on_unmount(self) -> None:
        """Stop reading the bus."""
        self._reader.stop()

    def _post_snapshot(self, snapshot: Snapshot) -> None:
        """Pass on a snapshot from the reader's thread."""
        self.post_message(self.SnapshotArrived(snapshot))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Ignore the keys of the views while a dialog is open."""
        return action == "quit" or not isinstance(self.screen, ModalScreen)

    # -- what is shown -----------------------------------------------------------------------------

    @property
    def view(self) -> TopView:
        """The view that is shown."""
        return self._reader.view

    @property
    def grid(self) -> LiveTable:
        """The table of this view."""
        letters = "errors" if self._by_error else "keys"
        names = {
            "overview": "providers",
            "lanes": "all-lanes",
            "letters": letters,
            "tail": "events",
        }
        return self.query_one(f"#{names[self.view]}", LiveTable)

    def on_top_app_snapshot_arrived(self, arrived: SnapshotArrived) -> None:
        """Show a snapshot; if Redis did not answer, the one before stays on the screen.

        A snapshot that arrives while the app is closing is dropped, because the views are gone.
        """
        if not self.is_running:
            return
        snapshot = arrived.snapshot
        if snapshot.bus.status is not None:
            self._snapshot_at = self._clock.monotonic()
            if not self._held:
                self._snapshot = snapshot
                self._show()
        if snapshot.error and snapshot.error != self._error:
            self._show_message(snapshot.error, failed=True)
        self._error = snapshot.error
        self._show_head()

    def _show(self) -> None:
        """Show the last snapshot in the current view."""
        if self._snapshot is None:
            return
        self.grid.show([row for row in self._rows(self._snapshot) if row.contains(self._words)])
        if self.view == "overview":
            self._show_findings(self._snapshot)
        if self.view == "letters":
            self._show_detail()

    def _rows(self, snapshot: Snapshot) -> Sequence[rows.TableRow]:
        match self.view:
            case "overview":
                return rows.provider_rows(snapshot.bus)
            case "lanes":
                return rows.lane_rows(snapshot.bus, self._provider)
            case "letters":
                of = rows.error_rows if self._by_error else rows.letter_rows
                return of(snapshot.letters or ())
            case "tail":
                return rows.event_rows(snapshot.events or ())

    def _show_findings(self, snapshot: Snapshot) -> None:
        lines = [finding_line(one) for one in snapshot.bus.findings]
        text = Text("\n").join(lines) if lines else Text("Nothing is wrong.", "green")
        self.query_one("#findings", Static).update(text)

    def _show_detail(self) -> None:
        """Show in full the columns that the row under the cursor cuts off."""
        row, snapshot = self.grid.current, self._snapshot
        text = Text("No dead letters." if row is None else "")
        if row is not None:
            text = Text("\n").join(row.cells[-1 if self._by_error else -2 :])
        if snapshot is not None and snapshot.cut:
            text.append("\nOnly the first dead letters of each lane are shown.", "yellow")
        self.query_one("#detail", Static).update(text)

    def _tick(self) -> None:
        """Show how old the snapshot is, unless the app is closing."""
        if self.is_running:
            self._show_head()

    def _show_head(self) -> None:
        silent = self._clock.monotonic() - self._snapshot_at
        bus = self._snapshot.bus if self._snapshot else None
        text = head_line(self._settings.namespace, bus, silent, frozen=self._held)
        self.query_one("#head", Static).update(text)
        tabs = Text("   ").join(
            Text(title, "bold reverse" if view == self.view else "")
            for view, title in zip(VIEWS, _TITLES, strict=True)
        )
        for name, value in (("lanes of", self._provider), ("only", self._words)):
            if value and (name == "only" or self.view == "lanes"):
                tabs.append(f"   {name} ").append(one_line(value, 20), "bold")
        self.query_one("#tabs", Static).update(tabs)

    def on_data_table_row_highlighted(self) -> None:
        """Show the details of the row under the cursor."""
        if self.view == "letters":
            self._show_detail()

    def on_data_table_row_selected(self, chosen: DataTable.RowSelected) -> None:
        """Show a provider's lanes."""
        if self.view == "overview" and self.grid.current is not None:
            self._provider = self.grid.current.provider
            self.action_show("lanes")

    # -- keys --------------------------------------------------------------------------------------

    def action_show(self, view: TopView) -> None:
        """Show a view."""
        self.query_one(ContentSwitcher).current = view
        if view != "lanes":
            self._provider = ""
        self._reader.look_now(view)
        self.grid.focus()
        self._show()
        self._show_head()

    def action_turn(self, by: int) -> None:
        """Show the next view, or the one before."""
        self.action_show(VIEWS[(VIEWS.index(self.view) + by) % len(VIEWS)])

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(HelpDialog())

    def action_hold(self) -> None:
        """Freeze the screen, or let it follow the bus again."""
        self._held = not self._held
        self._reader.look_now(self.view)
        self._show_head()

    def action_group(self) -> None:
        """Show dead letters by key, or by error."""
        if self.view == "letters":
            self._by_error = not self._by_error
            self.query_one("#keys").display = not self._by_error
            self.query_one("#errors").display = self._by_error
            self.action_show("letters")

    def action_filter(self) -> None:
        """Open the field for the words of the filter."""
        words = self.query_one("#filter", Input)
        words.display = True
        words.focus()

    def action_all(self) -> None:
        """Show all rows again."""
        self._provider = ""
        self.query_one("#filter", Input).value = ""
        self._set_filter("")

    def on_input_changed(self, said: Input.Changed) -> None:
        """Show only rows that contain the words of the filter."""
        if said.input.id == "filter":
            self._words = said.value.strip()
            self._show()

    def on_input_submitted(self, said: Input.Submitted) -> None:
        """Go back to the rows."""
        if said.input.id == "filter":
            self._set_filter(said.value.strip())

    def _set_filter(self, words: str) -> None:
        self._words = words
        self.query_one("#filter", Input).display = False
        self.grid.focus()
        self._show()
        self._show_head()

    # -- acts --------------------------------------------------------------------------------------

    def action_pause(self) -> None:
        """Pause the provider under the cursor, or resume it."""
        row, snapshot = self.grid.current, self._snapshot
        if self.view not in ("overview", "lanes") or row is None or snapshot is None:
            return
        status = snapshot.bus.status
        found = [one for one in status.providers if one.name == row.provider] if status else []
        if found:
            kind = ResumeProvider if found[0].paused else PauseProvider
            self._ask_about(kind(name=row.provider))

    def action_settle(self, name: Literal["retry", "discard"]) -> None:
        """Retry or discard the dead letters under the cursor."""
        row = self.grid.current
        if self.view != "letters" or row is None:
            return
        error, key = (row.name, None) if self._by_error else (None, row.name)
        kind = RetryLetters if name == "retry" else DiscardLetters
        self._ask_about(kind(key=key, error=error, provider=row.provider))

    def _ask_about(self, action: Action[Any, Any]) -> None:
        self._run_on_thread(lambda: self.ActPlanned(self._acts.question(action)))

    def on_top_app_act_planned(self, planned: ActPlanned) -> None:
        """Ask the operator whether to act, and for the reason."""
        action = planned.question.action

        def carry_out(reason: str) -> Message:
            text, failed = self._acts.carry_out(action, reason)
            return self.ActEnded(text, failed=failed)

        def answered(reason: str | None) -> None:
            if reason is not None:
                self._run_on_thread(lambda: carry_out(reason))

        self.push_screen(ReasonDialog(planned.question), answered)

    def on_top_app_act_ended(self, told: ActEnded) -> None:
        """Show the result of an action, and read the bus again."""
        self._show_message(told.text, failed=told.failed)
        self._reader.look_now(self.view)

    def _show_message(self, text: str, *, failed: bool) -> None:
        said = one_line(masked(text, self._settings.secrets), _MESSAGE_WIDTH)
        self.clear_notifications()
        self.notify(said, severity="error" if failed else "information", markup=False)

    def _run_on_thread(self, work: Callable[[], Message]) -> None:
        """Do something that may wait on a thread of its own; only one at a time."""
        if self._busy:
            self._show_message("the last action is not done yet", failed=True)
            return
        self._busy = True

        def run() -> None:
            try:
                message: Any = work()
            except MemoryBusError as error:
                message = self.ActEnded(str(error), failed=True)
            self._busy = False
            self.post_message(message)

        threading.Thread(target=run, name="memorybus-top-act", daemon=True).start()
