"""The screen: four views of the bus, the keys, and the acts."""

import threading
from dataclasses import replace
from typing import Any, ClassVar, Final

from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.text.display import count_text, iso, one_line, visible
from memorybus.text.redact import masked
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Static

from memorybus_console.actions.action import Action, Ground, perform
from memorybus_console.actions.dead_letters import DiscardLetters, LettersAction, RetryLetters
from memorybus_console.actions.providers import PauseProvider, ResumeProvider
from memorybus_console.top import tables
from memorybus_console.top.reader import Reader, Snapshot, TopView
from memorybus_console.top.tables import LiveTable
from memorybus_console.views.render import duration
from memorybus_console.views.status import finding_line

VIEWS: Final[dict[TopView, str]] = {
    "overview": "1 Overview",
    "lanes": "2 Lanes",
    "letters": "3 Dead letters",
    "tail": "4 Tail",
}
SILENT_SECONDS: Final = 3.0  # seconds without a new snapshot after which the screen shows that

_WAIT_SECONDS: Final = 15.0
"""Seconds to wait for the lanes' owners; they carry a request out even if that takes longer."""

_MESSAGE_WIDTH: Final = 300  # the most characters of a message that is shown for a moment

_STYLES: Final = {"OK": "bold green", "WARNING": "bold yellow", "CRITICAL": "bold red"}

_KEYS: Final = """\
1 2 3 4    overview, lanes, dead letters, tail
tab        the next view; shift+tab the previous one
enter      on a provider: its lanes
/          only rows with these words; esc shows all again
g          dead letters by key, or by error
p          pause the provider under the cursor, or resume it
r          retry the dead letters under the cursor
d          discard them
space      freeze the screen, or let it continue
q          quit

Only what loses something asks first. The acts are those of the commands
memorybus provider pause, dlq retry and dlq discard."""


class Dialog(ModalScreen[str | None]):
    """Shows a text until a key is pressed, or until a reason is given, which is its result."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel")]

    def __init__(self, text: str, *, asks: bool) -> None:
        super().__init__()
        self._text = text
        self._asks = asks

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(Text(visible(self._text)))
            if self._asks:
                yield Input(placeholder="reason? enter: do it, esc: cancel", max_length=500)

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        """Take the reason; an empty one is ignored."""
        submitted.stop()
        if reason := submitted.value.strip():
            self.dismiss(reason)

    def on_input_changed(self, changed: Input.Changed) -> None:
        """Keep a reason from the filter of the rows."""
        changed.stop()

    def on_key(self) -> None:
        """Close a dialog that asks nothing."""
        if not self._asks:
            self.dismiss()


class TopApp(App[None]):
    """The live view of a bus."""

    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit", "Quit", priority=False),
        Binding("question_mark", "help", "Keys", key_display="?"),
        *(Binding(title[0], f"show({view!r})", show=False) for view, title in VIEWS.items()),
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

    def __init__(self, settings: Settings, operator: str, clock: Clock = SYSTEM) -> None:
        super().__init__()
        self._ground = Ground(settings, operator, _WAIT_SECONDS, clock=clock)
        self._reader = Reader(settings, lambda now: self.call_later(self.take, now), clock)
        self._snapshot: Snapshot | None = None
        self._snapshot_at = clock.monotonic()
        self._error = self._provider = self._words = ""
        self._by_error = self._held = self._busy = False

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        yield Static(id="tabs")
        yield LiveTable()
        with VerticalScroll(id="below", can_focus=False):
            yield Static(id="detail")
        yield Input(placeholder="rows with these words", id="filter")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self._reader.start()
        self.set_interval(1.0, self._show_head)
        self.action_show("overview")

    def on_unmount(self) -> None:
        self._reader.stop.set()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Ignore the keys of the views while a dialog is open."""
        return action == "quit" or not isinstance(self.screen, Dialog)

    @property
    def grid(self) -> LiveTable:
        return self.query_one(LiveTable)

    def take(self, snapshot: Snapshot) -> None:
        """Show a snapshot; if Redis did not answer, the one before stays on the screen.

        A snapshot that arrives while the app is closing is dropped, because the views are gone.
        """
        if not self.is_running:
            return
        if snapshot.bus.status is not None:
            self._snapshot_at = self._ground.clock.monotonic()
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
        columns, rows = self._table(self._snapshot)
        self.grid.show(columns, [row for row in rows if row.contains(self._words)])
        letters = self._reader.view == "letters"
        text = self._letter(self._snapshot) if letters else self._findings(self._snapshot)
        self.query_one("#detail", Static).update(text)

    def _table(self, now: Snapshot) -> tuple[tables.Columns, list[tables.TableRow]]:
        match self._reader.view:
            case "overview":
                return tables.PROVIDERS, tables.provider_rows(now.bus)
            case "lanes":
                return tables.LANES, tables.lane_rows(now.bus, self._provider)
            case "letters":
                columns = tables.ERRORS if self._by_error else tables.KEYS
                return columns, tables.letter_rows(now.letters, columns)
            case "tail":
                return tables.EVENTS, [tables.event_row(event) for event in reversed(now.events)]

    def on_data_table_row_highlighted(self) -> None:
        """Show all of what the row of a dead letter cuts off."""
        if self._snapshot and self._reader.view == "letters" and self.is_running:
            self.query_one("#detail", Static).update(self._letter(self._snapshot))

    def _findings(self, snapshot: Snapshot) -> Text:
        lines = [finding_line(finding) for finding in snapshot.bus.findings]
        return Text("\n").join(lines) if lines else Text("Nothing is wrong.", "green")

    def _letter(self, snapshot: Snapshot) -> Text:
        row, last = self.grid.current, -1 if self._by_error else -2
        cells = [Text("No dead letters.")] if row is None else [*self.grid.cells(row)][last:]
        cut = "\nOnly the first dead letters of each lane are shown." if snapshot.cut else ""
        return Text("\n").join(cells).append(cut, "yellow")

    def on_data_table_row_selected(self) -> None:
        if self._reader.view == "overview" and self.grid.current is not None:
            self._provider = self.grid.current.provider
            self.action_show("lanes")

    def _show_head(self) -> None:
        """Show the state of the bus and the views, unless the app is closing."""
        if not self.is_running:
            return
        self.query_one("#head", Static).update(self._head())
        tabs = Text("   ").join(
            Text(title, "bold reverse" if view == self._reader.view else "")
            for view, title in VIEWS.items()
        )
        for name, value in (("lanes of", self._provider), ("only", self._words)):
            if value:
                tabs.append(f"   {name} ").append(one_line(value, 20), "bold")
        self.query_one("#tabs", Static).update(tabs)

    def _head(self) -> Text:
        """Return the state of the bus; if it was not read for a while, only when that was."""
        head = Text.assemble("memorybus ", (self._ground.settings.namespace, "bold"), "  ")
        silent = self._ground.clock.monotonic() - self._snapshot_at
        if silent >= SILENT_SECONDS:
            head.append(f"no news for {duration(silent)}  ", "bold red")
        if self._snapshot is None or self._snapshot.bus.status is None:
            return head
        bus, status = self._snapshot.bus, self._snapshot.bus.status
        at = f"{(iso(bus.at_ms) or '')[11:19]} UTC"
        if silent >= SILENT_SECONDS:
            return head.append(f"shown as of {at}", "dim")
        head.append(bus.verdict.state, _STYLES.get(bus.verdict.state, "bold"))
        head.append("  frozen (space)" if self._held else "", "bold yellow")
        workers, events = len(status.workers), status.log.published
        return head.append(
            f"  {count_text(workers, 'worker')}  {count_text(events, 'event')}  {at}"
        )

    def _show_message(self, text: str, *, failed: bool) -> None:
        message = one_line(masked(text, self._ground.settings.secrets), _MESSAGE_WIDTH)
        self.clear_notifications()
        self.notify(message, severity="error" if failed else "information", markup=False)

    def action_show(self, view: TopView) -> None:
        if view != "lanes":
            self._provider = ""
        self._reader.read_now(view)
        self.screen.set_classes(view)
        self.grid.focus()
        self._show()
        self._show_head()

    def action_turn(self, by: int) -> None:
        views = list(VIEWS)
        self.action_show(views[(views.index(self._reader.view) + by) % len(views)])

    def action_help(self) -> None:
        self.push_screen(Dialog(_KEYS, asks=False))

    def action_hold(self) -> None:
        self._held = not self._held
        self.action_show(self._reader.view)

    def action_group(self) -> None:
        self._by_error = not self._by_error
        self._show()

    def action_filter(self) -> None:
        words = self.query_one("#filter", Input)
        words.display = True
        words.focus()

    def action_all(self) -> None:
        self._provider = self._words = self.query_one("#filter", Input).value = ""
        self.on_input_submitted()

    def on_input_changed(self, changed: Input.Changed) -> None:
        """Show only rows that contain the words of the filter."""
        self._words = changed.value.strip()
        self._show()

    def on_input_submitted(self) -> None:
        """Go back to the rows."""
        self.query_one("#filter", Input).display = False
        self.action_show(self._reader.view)

    def action_pause(self) -> None:
        row, status = self.grid.current, self._snapshot and self._snapshot.bus.status
        if row is None or not status or self._reader.view not in ("overview", "lanes"):
            return
        paused = any(each.paused for each in status.providers if each.name == row.provider)
        kind = ResumeProvider if paused else PauseProvider
        self._begin(kind(name=row.provider))

    def action_settle(self, name: str) -> None:
        row = self.grid.current
        if self._reader.view == "letters" and row is not None:
            error, key = (row.name, None) if self._by_error else (None, row.name)
            kind: type[LettersAction] = RetryLetters if name == "retry" else DiscardLetters
            self._begin(kind(key=key, error=error, provider=row.provider))

    def _begin(self, action: Action[Any, Any]) -> None:
        """Carry an act out on a thread, because it may wait; only one at a time."""
        if self._busy:
            self._show_message("the last act is not done yet", failed=True)
            return
        self._busy = True
        threading.Thread(
            target=self._act, args=(action,), name="memorybus-top-act", daemon=True
        ).start()

    def _act(self, action: Action[Any, Any]) -> None:
        """Carry an act out, or plan it if a reason for it is missing."""
        try:
            if action.needs_reason and not action.reason:
                plan = "\n".join([action.question(), *action.plan(self._ground).sentences()])
                self.call_later(self._ask, action, plan)
            else:
                done = perform(action, self._ground)
                text, failed = "\n".join(done.sentences()), done.failed()
                self.call_later(self._show_end, text, failed=failed)
        except MemoryBusError as error:
            self.call_later(self._show_end, str(error), failed=True)
        self._busy = False

    def _ask(self, action: Action[Any, Any], plan: str) -> None:
        def carry_out(reason: str | None) -> None:
            if reason:
                self._begin(replace(action, reason=reason))

        self.push_screen(Dialog(plan, asks=True), carry_out)

    def _show_end(self, text: str, *, failed: bool) -> None:
        """Show the result of an act, and read the bus again."""
        self._show_message(text, failed=failed)
        self._reader.read_now(self._reader.view)
