"""A file with secrets, which only its owner may read."""

import os
import stat
from pathlib import Path

from memorybus.errors import ConfigError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read(path: Path, who: str, option: str) -> str:
    """Return the content of a private file.

    Args:
        path: the file.
        who: the words that errors begin with.
        option: the option that names the file.

    Raises:
        ConfigError: the file cannot be read, or is open to others.
    """
    try:
        with open(path, encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            found = file.read()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{who}: {option} cannot be read: {error}") from error
    if mode & _OTHERS:
        raise ConfigError(f"{who}: {path} is open to others; run: chmod 600 {path}")
    return found
