"""The secrets file: environment variables that workers add to their own, readable by one user."""

import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memorybus.errors import ConfigError

SECRETS_NAME = "memorybus.secrets.toml"
_GROUP_AND_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def is_variable(name: str) -> bool:
    """Return whether an environment variable may have this name (pure)."""
    return _VARIABLE.fullmatch(name) is not None


def read_secrets(path: Path) -> dict[str, str]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            mode = stat.S_IMODE(path.stat().st_mode)
            text = file.read()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {_why(error)}") from error
    if mode & _GROUP_AND_OTHERS:
        raise ConfigError(f"{path} is open to others (mode {mode:o}); run: chmod 600 {path}")
    return _variables(path, text)


def _why(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or "unreadable" if isinstance(error, OSError) else "no UTF-8 text"


def _variables(path: Path, text: str) -> dict[str, str]:
    try:
        found: Mapping[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = str(error).rpartition("(")[2].rstrip(")")  # the rest may quote a value
        raise ConfigError(f'{path} must hold lines of NAME = "value" ({where})') from None
    wrong = [
        name
        for name, value in found.items()
        if not (is_variable(name) and isinstance(value, str) and "\0" not in value)
    ]
    if wrong:
        raise ConfigError(
            f"{path}: {wrong[0][:100]!r} must be a variable's name (letters, digits and _), and "
            f"have a text as its value"
        )
    return dict(found)
