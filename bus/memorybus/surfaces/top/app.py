"""The screen: four views of one look, and the keys."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import ContentSwitcher, DataTable, Footer, Input, Static

from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.operations.dead_letters.selection import Action, LetterSelection
from memorybus.surfaces.top import rows
from memorybus.surfaces.top.acts import Act, Acts, Pausing, Question, Settling
from memorybus.surfaces.top.dialogs import Asking, Help
from memorybus.surfaces.top.grid import Grid
from memorybus.surfaces.top.head import head_line
from memorybus.surfaces.top.reader import Reader, Seen, View
from memorybus.surfaces.views.safe import one_line
from memorybus.surfaces.views.status import finding_line
from memorybus.text.redact import masked

VIEWS: Final[tuple[View, ...]] = ("overview", "lanes", "letters", "tail")
_TITLES: Final = ("1 Overview", "2 Lanes", "3 Dead letters", "4 Tail")
_SAID: Final = 300
"""Characters of what is told for a moment."""

_CSS: Final = """
#head, #tabs { height: 1; padding: 0 1; }
#tabs { color: $text-muted; }
ContentSwitcher { height: 1fr; }
#overview Grid { height: auto; max-height: 60%; }
#findings { height: 1fr; padding: 1 1 0 1; }
#letters Grid { height: 1fr; }
#detail { height: 4; padding: 0 1; border-top: solid $surface; }
#filter { dock: bottom; height: 1; border: none; display: none; margin-bottom: 1; }
ModalScreen { align: center middle; }
#box { width: 72; max-width: 95%; height: auto; padding: 1 2; border: round $primary; }
#box { background: $surface; }
#title { margin-bottom: 1; }
#why { margin-top: 1; }
"""


class TopApp(App[None]):
    """The bus, live.

    Args:
        settings: where it is.
        operator: who acts, for the record.
        clock: time.
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

    class Arrived(Message):
        """A look has come."""

        def __init__(self, seen: Seen) -> None:
            """Carry it."""
            super().__init__()
            self.seen = seen

    class Planned(Message):
        """What an act would do is known."""

        def __init__(self, question: Question) -> None:
            """Carry what to ask."""
            super().__init__()
            self.question = question

    class Told(Message):
        """An act is done, or was not."""

        def __init__(self, text: str, *, failed: bool) -> None:
            """Carry what to say."""
            super().__init__()
            self.text = text
            self.failed = failed

    def __init__(self, settings: Settings, operator: str, clock: Clock = SYSTEM) -> None:
        """Show nothing yet."""
        super().__init__()
        self._settings = settings
        self._clock = clock
        self._reader = Reader(settings, self._take, clock)
        self._acts = Acts(settings, operator, clock)
        self._seen: Seen | None = None
        self._seen_at = clock.monotonic()
        self._error = ""
        self._provider = ""
        self._words = ""
        self._by_error = False
        self._held = False
        self._busy = False

    # -- what is there -----------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Make the views."""
        yield Static(id="head")
        yield Static(id="tabs")
        with ContentSwitcher(initial="overview"):
            with Vertical(id="overview"):
                yield Grid(rows.PROVIDERS, "providers")
                with VerticalScroll(can_focus=False):
                    yield Static(id="findings")
            with Vertical(id="lanes"):
                yield Grid(rows.LANES, "all-lanes")
            with Vertical(id="letters"):
                yield Grid(rows.LETTERS, "keys")
                yield Grid(rows.ERRORS, "errors")
                yield Static(id="detail")
            with Vertical(id="tail"):
                yield Grid(rows.EVENTS, "events")
        yield Input(placeholder="rows with these words", id="filter")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to look."""
        self.query_one("#errors").display = False
        self._reader.start()
        self.set_interval(1.0, self._tick)
        self.action_show("overview")

    def on_unmount(self) -> None:
        """Look no more."""
        self._reader.stop()

    def _take(self, seen: Seen) -> None:
        """Pass on what the reader's thread saw."""
        self.post_message(self.Arrived(seen))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let no key of the views act behind a question."""
        return action == "quit" or not isinstance(self.screen, ModalScreen)

    # -- what is shown -----------------------------------------------------------------------------

    @property
    def view(self) -> View:
        """The view that is shown."""
        return self._reader.view

    @property
    def grid(self) -> Grid:
        """The table of this view."""
        letters = "errors" if self._by_error else "keys"
        names = {
            "overview": "providers",
            "lanes": "all-lanes",
            "letters": letters,
            "tail": "events",
        }
        return self.query_one(f"#{names[self.view]}", Grid)

    def on_top_app_arrived(self, arrived: Arrived) -> None:
        """Take in what was seen; what was seen before stays if Redis does not answer.

        A look that ends while the screen is being left has no views to fill any more.
        """
        if not self.is_running:
            return
        seen = arrived.seen
        if seen.look.status is not None:
            self._seen_at = self._clock.monotonic()
            if not self._held:
                self._seen = seen
                self._show()
        if seen.error and seen.error != self._error:
            self._say(seen.error, failed=True)
        self._error = seen.error
        self._show_head()

    def _show(self) -> None:
        """Show what was seen last in this view."""
        if self._seen is None:
            return
        self.grid.show([row for row in self._rows(self._seen) if row.has(self._words)])
        if self.view == "overview":
            self._show_findings(self._seen)
        if self.view == "letters":
            self._show_detail()

    def _rows(self, seen: Seen) -> Sequence[rows.Row]:
        match self.view:
            case "overview":
                return rows.of_providers(seen.look)
            case "lanes":
                return rows.of_lanes(seen.look, self._provider)
            case "letters":
                of = rows.of_errors if self._by_error else rows.of_letters
                return of(seen.letters or ())
            case "tail":
                return rows.of_events(seen.events or ())

    def _show_findings(self, seen: Seen) -> None:
        lines = [finding_line(one) for one in seen.look.findings]
        text = Text("\n").join(lines) if lines else Text("Nothing is wrong.", "green")
        self.query_one("#findings", Static).update(text)

    def _show_detail(self) -> None:
        """Show whole what the row under the cursor cuts off."""
        row, seen = self.grid.current, self._seen
        text = Text("No dead letters." if row is None else "")
        if row is not None:
            text = Text("\n").join(row.cells[-1 if self._by_error else -2 :])
        if seen is not None and seen.cut:
            text.append("\nOnly the first of each lane are shown.", "yellow")
        self.query_one("#detail", Static).update(text)

    def _tick(self) -> None:
        """Show how old the news is, until the screen is left."""
        if self.is_running:
            self._show_head()

    def _show_head(self) -> None:
        silent = self._clock.monotonic() - self._seen_at
        look = self._seen.look if self._seen else None
        text = head_line(self._settings.namespace, look, silent, frozen=self._held)
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
        """Show the rest of the row under the cursor."""
        if self.view == "letters":
            self._show_detail()

    def on_data_table_row_selected(self, chosen: DataTable.RowSelected) -> None:
        """Show a provider's lanes."""
        if self.view == "overview" and self.grid.current is not None:
            self._provider = self.grid.current.key
            self.action_show("lanes")

    # -- keys --------------------------------------------------------------------------------------

    def action_show(self, view: View) -> None:
        """Show a view."""
        self.query_one(ContentSwitcher).current = view
        if view != "lanes":
            self._provider = ""
        self._reader.hurry(view)
        self.grid.focus()
        self._show()
        self._show_head()

    def action_turn(self, by: int) -> None:
        """Show the next view, or the one before."""
        self.action_show(VIEWS[(VIEWS.index(self.view) + by) % len(VIEWS)])

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(Help())

    def action_hold(self) -> None:
        """Hold what is shown, or go on."""
        self._held = not self._held
        self._reader.hurry(self.view)
        self._show_head()

    def action_group(self) -> None:
        """Show dead letters by key, or by error."""
        if self.view == "letters":
            self._by_error = not self._by_error
            self.query_one("#keys").display = not self._by_error
            self.query_one("#errors").display = self._by_error
            self.action_show("letters")

    def action_filter(self) -> None:
        """Ask for words."""
        words = self.query_one("#filter", Input)
        words.display = True
        words.focus()

    def action_all(self) -> None:
        """Show all rows again."""
        self._provider = ""
        self.query_one("#filter", Input).value = ""
        self._narrow("")

    def on_input_changed(self, said: Input.Changed) -> None:
        """Show only rows with what is written."""
        if said.input.id == "filter":
            self._words = said.value.strip()
            self._show()

    def on_input_submitted(self, said: Input.Submitted) -> None:
        """Go back to the rows."""
        if said.input.id == "filter":
            self._narrow(said.value.strip())

    def _narrow(self, words: str) -> None:
        self._words = words
        self.query_one("#filter", Input).display = False
        self.grid.focus()
        self._show()
        self._show_head()

    # -- acts --------------------------------------------------------------------------------------

    def action_pause(self) -> None:
        """Pause the provider under the cursor, or let it go on."""
        row, seen = self.grid.current, self._seen
        if self.view not in ("overview", "lanes") or row is None or seen is None:
            return
        name = row.key if self.view == "overview" else row.key.rpartition(" ")[0]
        status = seen.look.status
        found = [one for one in status.providers if one.name == name] if status else []
        if found:
            self._begin(Pausing(name, paused=not found[0].paused))

    def action_settle(self, action: Action) -> None:
        """Retry or discard the dead letters under the cursor."""
        row = self.grid.current
        if self.view != "letters" or row is None:
            return
        provider, _, name = row.key.partition("\0")
        error, key = (name, None) if self._by_error else (None, name)
        self._begin(Settling(action, LetterSelection(key=key, error=error, provider=provider)))

    def _begin(self, act: Act) -> None:
        self._aside(lambda: self.Planned(self._acts.question(act)))

    def on_top_app_planned(self, planned: Planned) -> None:
        """Ask."""
        act = planned.question.act

        def answered(reason: str | None) -> None:
            if reason is not None:
                self._aside(lambda: self.Told(self._acts.done(act, reason), failed=False))

        self.push_screen(Asking(planned.question), answered)

    def on_top_app_told(self, told: Told) -> None:
        """Say what became of an act, and look."""
        self._say(told.text, failed=told.failed)
        self._reader.hurry(self.view)

    def _say(self, text: str, *, failed: bool) -> None:
        said = one_line(masked(text, self._settings.secrets), _SAID)
        self.clear_notifications()
        self.notify(said, severity="error" if failed else "information", markup=False)

    def _aside(self, work: Callable[[], Message]) -> None:
        """Do something that may wait on a thread of its own; one at a time."""
        if self._busy:
            self._say("the last act is not done yet", failed=True)
            return
        self._busy = True

        def run() -> None:
            try:
                message: Any = work()
            except MemoryBusError as error:
                message = self.Told(str(error), failed=True)
            self._busy = False
            self.post_message(message)

        threading.Thread(target=run, name="memorybus-top-act", daemon=True).start()
