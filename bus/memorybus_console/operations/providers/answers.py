"""Turns what a person or a script answers for an option into a value of its schema. Pure."""

import re
import tomllib
from typing import Any

from memorybus.config.secrets_file import is_variable
from memorybus.errors import ConfigError
from memorybus.processes.reports import OptionField

_FLAGS = {
    **dict.fromkeys(("yes", "y", "true", "on", "1"), True),
    **dict.fromkeys(("no", "n", "false", "off", "0"), False),
}
_ENDS = re.compile(r"_(env|var|variable)$")
_UNSAFE = re.compile(r"[^A-Z0-9]+")


def parse_answer(field: OptionField, text: str) -> Any:
    """Return the value of an answer.

    A choice may be given by its number in the list, from 1.

    Raises:
        ConfigError: the answer is not valid; the message says what is, and repeats no secret.
    """
    if field.secret:
        return _parse_variable(field, text)
    if field.choices:
        return _parse_choice(field, text)
    match field.kind_of_value:
        case "flag":
            return _parse_flag(field, text)
        case "number":
            return _parse_number(field, text)
        case "list":
            return _parse_list(text)
    return text


def _parse_variable(field: OptionField, text: str) -> str:
    name = text.removeprefix("$")
    if not is_variable(name):
        raise ConfigError(
            f"{field.key} takes the name of an environment variable, of letters, digits and _, and "
            f"no secret itself: that belongs into the secrets file (see --secret)"
        )
    return name


def _parse_choice(field: OptionField, text: str) -> Any:
    by_text = {str(choice): choice for choice in field.choices}
    by_number = {str(n): choice for n, choice in enumerate(field.choices, 1)}
    if text not in by_number | by_text:
        raise ConfigError(f"{field.key} must be one of: {', '.join(by_text)}")
    return (by_number | by_text)[text]


def _parse_flag(field: OptionField, text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise ConfigError(f"{field.key} must be yes or no")
    return _FLAGS[text.lower()]


def _parse_number(field: OptionField, text: str) -> int | float:
    try:
        found = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        found = None
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise ConfigError(f"{field.key} must be a number")
    return found


def _parse_list(text: str) -> list[Any]:
    if text.startswith("["):
        try:
            return list(tomllib.loads(f"value = {text}")["value"])
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f'{text!r} must read ["a", "b"], or a, b') from error
    return [part.strip() for part in text.split(",") if part.strip()]


def default_variable(instance: str, field: OptionField) -> str:
    """Return the default name of the environment variable for a secret of an instance."""
    words = _UNSAFE.sub("_", f"{instance}_{_ENDS.sub('', field.key)}".upper()).strip("_")
    return words if is_variable(words) else f"MB_{words}"
