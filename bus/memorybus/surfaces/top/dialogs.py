"""What stands over the screen: a question before an act, and the keys."""

from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from memorybus.surfaces.top.acts import Question
from memorybus.surfaces.views.render import line

KEYS: Final = """\
1 2 3 4    overview, lanes, dead letters, tail
tab        the next of them; shift+tab the one before
enter      on a provider: its lanes
/          only rows with these words; esc shows all again
g          dead letters by key, or by error
p          pause the provider under the cursor, or let it go on
r          retry the dead letters under the cursor
d          discard them
space      hold what is shown, or go on
q          quit

Acts ask first, and keep your reason. What they do is what
memorybus provider pause, dlq retry and dlq discard do."""


class Asking(ModalScreen[str | None]):
    """Asks for a reason; dismissed with it, or with None if nothing shall be done.

    Args:
        question: what is asked.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Cancel")]

    def __init__(self, question: Question) -> None:
        """Ask it."""
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """Show what would be done, and a line for the reason."""
        how = "why? enter does it, esc leaves it" if self._question.why else "enter does it"
        with Vertical(id="box"):
            yield Static(line(self._question.title, "bold"), id="title")
            yield Static(line(self._question.plan))
            yield Input(placeholder=how, id="why", max_length=500)

    def on_input_submitted(self, said: Input.Submitted) -> None:
        """Take the reason; an empty one does nothing where one is kept."""
        reason = said.value.strip()
        if reason or not self._question.why:
            self.dismiss(reason)

    def action_leave(self) -> None:
        """Do nothing."""
        self.dismiss(None)


class Help(ModalScreen[None]):
    """Shows the keys; any key leaves."""

    def compose(self) -> ComposeResult:
        """Show them."""
        with Vertical(id="box"):
            yield Static(Text(KEYS))

    def on_key(self) -> None:
        """Leave."""
        self.dismiss()
