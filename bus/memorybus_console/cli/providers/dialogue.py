"""Asks on stderr for a provider's options, which flags may give; a secret is not echoed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from getpass import getpass
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeVar, cast

import msgspec
from memorybus.errors import ConfigError
from memorybus.health.finding import Check
from memorybus.processes.reports import KindOffer, OptionField, TrialStep
from memorybus.text.display import visible
from rich.console import Console
from rich.text import Text

from memorybus_console.cli.options import parse_key_values, split_word
from memorybus_console.views.render import check_line, line

if TYPE_CHECKING:
    from memorybus.config.settings import Settings

    from memorybus_console.operations.providers.setup import SetupAnswers, Target

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
        """Return the answer without spaces around it; the default for an empty one."""
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
        answer = self.ask(f"{question} [{'Y/n' if default else 'y/N'}]").lower()
        return answer.startswith("y") if answer else default


def _raise_end_of_input() -> NoReturn:
    raise ConfigError(
        "standard input ended before the last question was answered; nothing was written for it"
    )


def parse_choice(answer: str, names: Sequence[str]) -> list[str]:
    """Return what a person chose from a numbered list: numbers or words, by commas or spaces."""
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
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def answers_from_flags(
    targets: Sequence["Target"],
    offers: Mapping[str, KindOffer],
    changes: Sequence[str],
    secrets: Sequence[str],
    lines: TextIO,
) -> dict[str, "SetupAnswers"]:
    """Return the values that flags give, by instance.

    Args:
        changes: words ``key=value`` or ``name.key=value``.
        secrets: options, named likewise, whose values are on `lines`.
    """
    from memorybus_console.operations.providers.setup import SetupAnswers, default_variable

    answers_by_name = {target.name: SetupAnswers(target, {}, {}) for target in targets}
    for word in changes:
        name, key, text = _split(word, answers_by_name)
        answers = answers_by_name[name]
        answers.options[key] = _value(offers[answers.target.kind], key, text)
    for word in secrets:
        name, key, _ = _split(f"{word}=", answers_by_name)
        answers = answers_by_name[name]
        field = _field(offers[answers.target.kind], key)
        if field is None or not field.secret:
            raise ConfigError(f"--secret {word}: {answers.target.kind} has no such secret")
        variable = str(answers.options.get(key) or default_variable(name, field))
        answers.options[key] = variable
        answers.secrets[variable] = _read_secret(lines, word)
    return answers_by_name


def _split(word: str, answers_by_name: Mapping[str, "SetupAnswers"]) -> tuple[str, str, str]:
    left, text = split_word(word)
    if len(answers_by_name) == 1:
        (name,) = answers_by_name
        return name, left.removeprefix(f"{name}."), text
    name = next((own for own in answers_by_name if left.startswith(f"{own}.")), "")
    if not name:
        ways = ", ".join(f"{own}.{left}" for own in answers_by_name)
        raise ConfigError(f"--set {left}: name the instance: {ways}")
    return name, left.removeprefix(f"{name}."), text


def _field(offer: KindOffer, key: str) -> OptionField | None:
    return next((option for option in offer.options or () if option.key == key), None)


def _value(offer: KindOffer, key: str, text: str) -> Any:
    from memorybus_console.operations.providers.setup import parse_answer

    field = _field(offer, key)
    return parse_key_values([f"{key}={text}"])[key] if field is None else parse_answer(field, text)


def _read_secret(lines: TextIO, what: str) -> str:
    secret = lines.readline().rstrip("\r\n")
    if not secret:
        raise ConfigError(f"--secret {what}: standard input holds no line for it")
    return secret


# -- a person --------------------------------------------------------------------------------------


def ask_options(
    dialogue: Dialogue,
    settings: "Settings",
    fields: Sequence[OptionField],
    now: Mapping[str, Any],
    answers: "SetupAnswers",
) -> "SetupAnswers":
    """Ask for options that flags left open: first the important ones, then the others if wanted.

    Args:
        settings: lead to the secrets that are stored already.
        answers: the values that flags gave.
    """
    options, secrets = dict(answers.options), dict(answers.secrets)
    for field in _fields_to_ask(
        dialogue, [option for option in fields if option.key not in options]
    ):
        if field.secret:
            variable, value = _ask_secret(dialogue, settings, answers.target.name, field, now)
            options |= {field.key: variable} if variable else {}
            secrets |= {variable: value} if value else {}
            continue
        before = now.get(field.key, field.default)
        answer = _ask(dialogue, field, option_text(before))
        if answer != before and answer is not None:
            options[field.key] = answer
    return msgspec.structs.replace(answers, options=options, secrets=secrets)


def _fields_to_ask(dialogue: Dialogue, fields: Sequence[OptionField]) -> Iterator[OptionField]:
    first = [
        field for field in fields if field.required or field.secret or field.choices or field.hint
    ]
    yield from first
    others = [field for field in fields if field not in first]
    if others and dialogue.confirm(f"{len(others)} more options: change any?", default=False):
        yield from others


def _ask(dialogue: Dialogue, field: OptionField, before: str) -> Any:
    """Return the answer as a value; None if there is none."""
    from memorybus_console.operations.providers.setup import parse_answer

    _explain(dialogue, field)

    def parse(text: str) -> Any:
        if text:
            return parse_answer(field, text)
        if field.required:
            raise ConfigError(f"{field.key} is required")
        return None

    return dialogue.ask_until(field.key, before, parse)


def _ask_secret(
    dialogue: Dialogue,
    settings: "Settings",
    name: str,
    field: OptionField,
    now: Mapping[str, Any],
) -> tuple[str, str]:
    """Return the variable and the value of a secret; "" for none, or for one that stays."""
    from memorybus.config.secrets_file import read_secrets
    from memorybus.config.settings import is_variable_set

    from memorybus_console.operations.providers.setup import (
        default_variable,
        parse_answer,
        secrets_path,
    )

    _explain(dialogue, field)
    variable = str(now.get(field.key) or default_variable(name, field))
    kept = variable in read_secrets(secrets_path(settings))
    if is_variable_set(variable):
        dialogue.say(f"  {variable} is set in this environment, which overrides the file", "dim")
    stays = f"Enter: {variable} stays" if kept or is_variable_set(variable) else "Enter: none"
    given = dialogue.ask(f"{field.key} (not shown; {stays}; $NAME: that variable)", secret=True)
    if given.startswith("$"):
        return parse_answer(field, given), ""
    if given:
        return variable, given
    return (variable, "") if kept or is_variable_set(variable) else ("", "")


def _explain(dialogue: Dialogue, field: OptionField) -> None:
    hint = f" ({field.hint})" if field.hint else ""
    dialogue.say(f"  {field.description}{hint}", "dim")
    if field.choices:
        listed = ", ".join(f"{n} {choice}" for n, choice in enumerate(field.choices, 1))
        dialogue.say(f"  one of: {listed}", "dim")


def step_line(step: TrialStep) -> Text:
    if not step.claimed:
        return line(f"– {step.name:<16} {'':>8}  {step.found}", "dim")
    timed = f"{f'{step.seconds * 1000:.0f} ms':>8}  {step.found}"
    return check_line(Check(name=step.name, ok=step.ok, found=timed, fix=step.fix))
