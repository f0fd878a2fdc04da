"""Parses options given as ``key=value`` on a command line."""

import math
import re
import tomllib
from collections.abc import Sequence
from typing import Any

from memorybus.errors import ConfigError

_SECRET = re.compile(r"(^|_)(key|token|password|secret|credentials?)$", re.IGNORECASE)


def parse_key_values(words: Sequence[str]) -> dict[str, Any]:
    """Return the values of ``key=value`` words: numbers, true, false and lists as in TOML.

    A number that JSON does not have, like ``inf``, stays a text.

    Raises:
        ConfigError: a word has no ``=``, or its name is that of a secret.
    """
    found: dict[str, Any] = {}
    for word in words:
        name, value = split_word(word)
        refuse_secret(name)
        found[name] = _parse_value(value)
    return found


def split_word(word: str) -> tuple[str, str]:
    """Return the name and the value of a ``key=value`` word.

    Raises:
        ConfigError: the word has no name or no ``=``.
    """
    name, equals, value = word.partition("=")
    if not (name and equals):
        raise ConfigError(f"{word!r} must read NAME=VALUE")
    return name, value


def refuse_secret(name: str) -> None:
    """Refuse an option that holds a secret, judging by its name.

    Raises:
        ConfigError: the name looks like that of a secret.
    """
    if _SECRET.search(name):
        raise ConfigError(
            f"{name}: a secret belongs in no command line and no settings file; put it into the "
            f"environment of the workers under the name that the backend reads"
        )


def _parse_value(text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return text if _is_infinite(found) else found


def _is_infinite(found: Any) -> bool:
    """Return whether a value is inf or nan, which JSON cannot hold."""
    return isinstance(found, float) and not math.isfinite(found)
