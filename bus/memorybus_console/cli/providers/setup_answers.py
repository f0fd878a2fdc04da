"""Collects the values of an instance's options from flags and from a person."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import msgspec
from memorybus.errors import ConfigError
from memorybus.processes.reports import KindOffer, OptionField

from memorybus_console.cli.key_values import parse_key_values, split_word
from memorybus_console.cli.providers.dialogue import Dialogue, option_text

if TYPE_CHECKING:
    from memorybus.config.settings import Settings

    from memorybus_console.operations.providers.setup import SetupAnswers, Target


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

    Raises:
        ConfigError: a word fits no instance or no option, or a line is missing.
    """
    from memorybus_console.operations.providers.answers import default_variable
    from memorybus_console.operations.providers.setup import SetupAnswers

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
    name = next((one for one in answers_by_name if left.startswith(f"{one}.")), "")
    if not name:
        known = ", ".join(f"{one}.{left}" for one in answers_by_name)
        raise ConfigError(f"--set {left}: name the instance: {known}")
    return name, left.removeprefix(f"{name}."), text


def _field(offer: KindOffer, key: str) -> OptionField | None:
    return next((option for option in offer.options or () if option.key == key), None)


def _value(offer: KindOffer, key: str, text: str) -> Any:
    from memorybus_console.operations.providers.answers import parse_answer

    field = _field(offer, key)
    return parse_key_values([f"{key}={text}"])[key] if field is None else parse_answer(field, text)


def _read_secret(lines: TextIO, what: str) -> str:
    found = lines.readline().rstrip("\r\n")
    if not found:
        raise ConfigError(f"--secret {what}: standard input holds no line for it")
    return found


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
    from memorybus_console.operations.providers.answers import parse_answer

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

    from memorybus_console.operations.providers.answers import default_variable, parse_answer
    from memorybus_console.operations.providers.config_file import secrets_path

    _explain(dialogue, field)
    variable = str(now.get(field.key) or default_variable(name, field))
    kept = variable in read_secrets(secrets_path(settings))
    if is_variable_set(variable):
        dialogue.say(f"  {variable} is set in this environment, which overrides the file", "dim")
    stays = f"Enter: {variable} stays" if kept or is_variable_set(variable) else "Enter: none"
    said = dialogue.ask(f"{field.key} (not shown; {stays}; $NAME: that variable)", secret=True)
    if said.startswith("$"):
        return parse_answer(field, said), ""
    if said:
        return variable, said
    return (variable, "") if kept or is_variable_set(variable) else ("", "")


def _explain(dialogue: Dialogue, field: OptionField) -> None:
    hint = f" ({field.hint})" if field.hint else ""
    dialogue.say(f"  {field.description}{hint}", "dim")
    if field.choices:
        listed = ", ".join(f"{n} {one}" for n, one in enumerate(field.choices, 1))
        dialogue.say(f"  one of: {listed}", "dim")
