"""The dialogs over the screen: a question before an action, and the keys."""

from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from memorybus_console.top.acts import ActQuestion
from memorybus_console.views.render import line

KEYS: Final = """\
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

Actions ask first, and record your reason. They do the same as
memorybus provider pause, dlq retry and dlq discard."""


class ReasonDialog(ModalScreen[str | None]):
    """Asks for a reason; its result is the reason, or None if nothing is to be done.

    Args:
        question: what to ask.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Cancel")]

    def __init__(self, question: ActQuestion) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """Show what would be done, and a line for the reason."""
        how = "reason? enter: do it, esc: cancel" if self._question.needs_reason else "enter: do it"
        with Vertical(id="box"):
            yield Static(line(self._question.title, "bold"), id="title")
            yield Static(line(self._question.plan))
            yield Input(placeholder=how, id="why", max_length=500)

    def on_input_submitted(self, said: Input.Submitted) -> None:
        """Take the reason; an empty one is ignored where a reason is required."""
        reason = said.value.strip()
        if reason or not self._question.needs_reason:
            self.dismiss(reason)

    def action_leave(self) -> None:
        """Close the dialog; nothing is done."""
        self.dismiss(None)


class HelpDialog(ModalScreen[None]):
    """Shows the keys; any key closes it."""

    def compose(self) -> ComposeResult:
        """Show them."""
        with Vertical(id="box"):
            yield Static(Text(KEYS))

    def on_key(self) -> None:
        """Close the dialog."""
        self.dismiss()
