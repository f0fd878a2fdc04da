"""Questions in a terminal: asked on stderr, answered on stdin; a secret is not echoed."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from rich.console import Console
from rich.text import Text

from memorybus.errors import ConfigError
from memorybus.surfaces.views.safe import visible

_T = TypeVar("_T")


class Dialogue:
    """Asks one person.

    Args:
        console: where questions are shown.
        read: reads a line after a prompt; `Console.input` if None.
    """

    def __init__(self, console: Console, read: Callable[..., str] | None = None) -> None:
        """Ask nothing yet."""
        self._console = console
        self._read = read or console.input

    def say(self, text: str, style: str = "") -> None:
        """Show a text, harmless."""
        self._console.print(Text(visible(text), style=style), soft_wrap=True)

    def ask(self, question: str, default: str = "", *, secret: bool = False) -> str:
        """Return the answer without spaces around it; the default for an empty one.

        Raises:
            ConfigError: there is nobody to answer.
        """
        shown = f" [{default}]" if default else ""
        prompt = Text.assemble((visible(question), "bold"), (visible(shown), "dim"), ": ")
        try:
            return self._read(prompt, password=secret).strip() or default
        except EOFError:
            _nobody()

    def ask_until(self, question: str, default: str, meant: Callable[[str], _T]) -> _T:
        """Ask until the answer means something; say each time why it does not."""
        while True:
            try:
                return meant(self.ask(question, default))
            except ConfigError as error:
                self.say(f"  {error}", "yellow")

    def agrees(self, question: str, *, default: bool) -> bool:
        """Return whether the answer is yes."""
        said = self.ask(f"{question} ({'Y/n' if default else 'y/N'})").lower()
        return said.startswith("y") if said else default


def _nobody() -> NoReturn:
    raise ConfigError("standard input has ended: nothing was written for what was asked last")


def chosen(answer: str, names: Sequence[str]) -> list[str]:
    """Return what a person chose of a numbered list: numbers or words, with commas or spaces.

    Raises:
        ConfigError: nothing, or a number that the list does not have.
    """
    words = answer.replace(",", " ").split()
    if not words:
        raise ConfigError("choose one or several: their numbers, or names")
    return [_named(word, names) for word in words]


def _named(word: str, names: Sequence[str]) -> str:
    if not word.isdecimal():
        return word
    if not 1 <= int(word) <= len(names):
        raise ConfigError(f"there is no {word}; the last is {len(names)}")
    return names[int(word) - 1]


def shown(value: Any) -> str:
    """Return a value of an option as a person would answer it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
