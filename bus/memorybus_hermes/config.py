"""Reads single values of Hermes's ``config.yaml``, such as which memory provider is active.

The file is YAML that Hermes writes, one key on each line. Only this form and a table in braces are
understood here, because the bus needs no YAML otherwise. The file is never changed.
"""

import re
from collections.abc import Iterator
from pathlib import Path

_YES = frozenset(("true", "yes", "on", "1"))


def active_provider(path: Path) -> str:
    """Return ``memory.provider`` of a configuration; "" if none is set or there is no file."""
    return _value(path, "memory", "provider")


def checkpoint_required(path: Path) -> bool:
    """Return ``compression.checkpoint_required``: messages must be saved before a compression."""
    return _value(path, "compression", "checkpoint_required").lower() in _YES


def isolates_plugins(path: Path) -> bool:
    """Return whether ``plugins.isolation`` makes Hermes run plugins in a process of its own."""
    return _value(path, "plugins", "isolation").lower() == "host"


def _value(path: Path, table: str, key: str) -> str:
    """Return the value of a key in one of the file's tables as written; "" if there is none."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    entry = rf"{key}:[ ]*['\"]?(?P<value>[\w.-]*)"
    in_braces = re.compile(rf"{table}:[ ]*\{{(?:[^{{}}]*,)?[ ]*{entry}")
    found = next(filter(None, map(in_braces.match, lines)), None)
    found = found or _find_in_table(
        list(_table_lines(lines, table)), re.compile(rf"(?P<indent>[ ]*){entry}")
    )
    return found["value"] if found else ""


def _table_lines(lines: list[str], name: str) -> Iterator[str]:
    """Yield the lines of a table without blank lines and comments."""
    inside = False
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not line[0].isspace():
            inside = line.split("#", 1)[0].rstrip() == f"{name}:"
        elif inside:
            yield line


def _find_in_table(lines: list[str], key: re.Pattern[str]) -> re.Match[str] | None:
    """Return the key of the table itself, not of a table within it."""
    indent = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    found = filter(None, map(key.match, lines))
    return next((match for match in found if len(match["indent"]) == indent), None)
