"""Reads one value of Hermes's ``config.yaml``: which memory provider is active.

The file is YAML; Hermes writes it, one key to a line. That is all that is understood here, besides
a table in braces: the bus needs no YAML otherwise, and changes nothing in it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

_KEY = re.compile(r"(?P<indent>[ ]*)provider:[ ]*['\"]?(?P<name>[\w.-]*)")
_BRACES = re.compile(r"memory:[ ]*\{(?:[^{}]*,)?[ ]*provider:[ ]*['\"]?(?P<name>[\w.-]*)")


def active_provider(path: Path) -> str:
    """Return ``memory.provider`` of a configuration; "" if none is set or there is no file."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    in_braces = filter(None, map(_BRACES.match, lines))
    found = next(in_braces, None) or _in_table(list(_table(lines)))
    return found["name"] if found else ""


def _table(lines: list[str]) -> Iterator[str]:
    """Yield the lines of the table ``memory``, blank ones and remarks left out."""
    inside = False
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not line[0].isspace():
            inside = line.split("#", 1)[0].rstrip() == "memory:"
        elif inside:
            yield line


def _in_table(lines: list[str]) -> re.Match[str] | None:
    """Return the key of the table itself, not of a table within it."""
    indent = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    found = filter(None, map(_KEY.match, lines))
    return next((match for match in found if len(match["indent"]) == indent), None)
