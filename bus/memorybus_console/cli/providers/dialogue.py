"""Asks questions on stderr and reads the answers from stdin; a secret is not echoed."""

from collections.abc import Callable, Sequence
from getpass import getpass
from typing import Any, NoReturn, TextIO, TypeVar, cast

from memorybus.errors import ConfigError
from rich.console import Console
from rich.text import Text

from memorybus_console.views.safe import visible

_T = TypeVar("_T")


class Dialogue:
    """Asks the person at the terminal.

    Args:
        read: reads a line after a prompt; `Console.input` if None.
    """

    def __init__(self, console: Console, read: Callable[..., str] | None = None) -> None:
        self._console = console
        self._read = read or self._read_line

    def say(self, text: str, style: str = "") -> None:
        """Show a text, with its control characters escaped."""
        self._console.print(Text(visible(text), style=style), soft_wrap=True)

    def ask(self, question: str, default: str = "", *, secret: bool = False) -> str:
        """Return the answer without spaces around it; the default for an empty one.

        Raises:
            ConfigError: standard input has ended.
        """
        shown = f" [{default}]" if default else ""
        prompt = Text.assemble((visible(question), "bold"), (visible(shown), "dim"), ": ")
        try:
            return self._read(prompt, password=secret).strip() or default
        except EOFError:
            _raise_end_of_input()

    def _read_line(self, prompt: Text, *, password: bool) -> str:
        """Show a prompt and read a line. A prompt for a secret is shown once the echo is off.

        Rich shows it before, and turning the echo off discards what was typed until then.
        """
        if not password:
            return self._console.input(prompt)
        with self._console.capture() as shown:
            self._console.print(prompt, end="")
        return getpass(shown.get(), stream=cast("TextIO", self._console.file))

    def ask_until(self, question: str, default: str, parse: Callable[[str], _T]) -> _T:
        """Ask until `parse` accepts the answer; show each time why it does not."""
        while True:
            try:
                return parse(self.ask(question, default))
            except ConfigError as error:
                self.say(f"  {error}", "yellow")

    def confirm(self, question: str, *, default: bool) -> bool:
        """Return whether the answer is yes."""
        answer = self.ask(f"{question} [{'Y/n' if default else 'y/N'}]").lower()
        return answer.startswith("y") if answer else default


def _raise_end_of_input() -> NoReturn:
    raise ConfigError(
        "standard input ended before the last question was answered; nothing was written for it"
    )


def parse_choice(answer: str, names: Sequence[str]) -> list[str]:
    """Return what a person chose from a numbered list: numbers or words, by commas or spaces.

    Raises:
        ConfigError: nothing was chosen, or a number that the list does not have.
    """
    words = answer.replace(",", " ").split()
    if not words:
        raise ConfigError("choose one or several: their numbers, or names")
    return [_choice_name(word, names) for word in words]


def _choice_name(word: str, names: Sequence[str]) -> str:
    if not word.isdecimal():
        return word
    if not 1 <= int(word) <= len(names):
        raise ConfigError(f"there is no {word}; the last is {len(names)}")
    return names[int(word) - 1]


def option_text(value: Any) -> str:
    """Return an option's value as a person would type it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
