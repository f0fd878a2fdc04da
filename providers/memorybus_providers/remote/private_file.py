"""Reads a file with secrets, which must be readable only by its owner."""

import os
import stat
from pathlib import Path

from memorybus.errors import ConfigError

_GROUP_AND_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read(path: Path, who: str, option: str) -> str:
    """Return the content of a private file.

    Args:
        who: the words with which errors begin.
        option: the option that names the file.

    Raises:
        ConfigError: the file cannot be read, or others may read or write it.
    """
    try:
        with open(path, encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            found = file.read()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{who}: {option} cannot be read: {error}") from error
    if mode & _GROUP_AND_OTHERS:
        raise ConfigError(f"{who}: {path} is open to others; run: chmod 600 {path}")
    return found
