"""The files below ``/memories``, as writes to a person's memory make them; pure."""

import re
from collections.abc import Iterable, Sequence
from types import MappingProxyType

from memorybus.events import Envelope, MemoryWritten

ROOT = "/memories"
MARK = MappingProxyType({"tool": "memory_20250818"})
"""The provenance of a write that is a file: its text begins with the path, in a line of its own."""

Files = dict[str, str]
"""The texts of files, by path."""

_PATH = re.compile(rf"{ROOT}(?:/(?!\.\.?(?:/|$))[^/\\]+)*")
_LONGEST_PATH = 500
_LEVELS = 2
_CONTEXT_LINES = 2


class WrongCommand(Exception):
    """A command that cannot be carried out; the message is for the model."""


def fold(events: Iterable[Envelope]) -> Files:
    """Return all files after writes in their order.

    A write that is no file corrects or removes the file that has its old text.
    """
    files: Files = {}
    for event in (envelope.event for envelope in events):
        if not isinstance(event, MemoryWritten):
            continue
        ours = event.provenance.items() >= MARK.items()
        old = _path_of(event.old_text, files, ours=ours) if event.old_text.strip() else ""
        if old is None or not (old or ours):
            continue
        files.pop(old, None)
        path, _, text = event.content.partition("\n")
        if event.content and not ours and path != old:
            files[old] = event.content
        elif event.content:
            files[path] = text
    return files


def _path_of(old_text: str, files: Files, *, ours: bool) -> str | None:
    """Return the file that a write names by its old text; None if it names none."""
    if ours:
        path = old_text.partition("\n")[0]
        return path if path in files else None
    return next((path for path, text in files.items() if old_text in f"{path}\n{text}"), None)


def checked_path(path: str) -> str:
    """Return a path below ``/memories``, without a slash at its end."""
    plain = path.rstrip("/")
    if not (_PATH.fullmatch(plain) and plain.isprintable() and len(plain) <= _LONGEST_PATH):
        shown = path[:_LONGEST_PATH]
        raise WrongCommand(f"Path must be below {ROOT}, without . and .., got: {shown!r}")
    return plain


def check_free(path: str, files: Files) -> None:
    """Raise `WrongCommand` if no file can be made at a path."""
    if path == ROOT or any(f"{name}/".startswith(f"{path}/") for name in files):
        raise WrongCommand(f"File {path} already exists")
    if parent := next((name for name in files if path.startswith(f"{name}/")), ""):
        raise WrongCommand(f"The path {parent} is a file, not a directory")


def text_of(path: str, files: Files) -> str:
    """Return the text of a file."""
    if path not in files:
        raise WrongCommand(f"The path {path} does not exist. Please provide a valid path.")
    return files[path]


def inside(path: str, files: Files, act: str = "") -> Files:
    """Return a file, or all files of a directory; an act that changes them spares the root."""
    if act and path == ROOT:
        raise WrongCommand(f"Cannot {act} the {ROOT} directory itself")
    chosen = {name: text for name, text in files.items() if f"{name}/".startswith(f"{path}/")}
    return chosen if chosen or path == ROOT else {path: text_of(path, files)}


def place_of(old: str, text: str, path: str) -> int:
    """Return the number of the line where a text begins that a file has once."""
    places = re.finditer(re.escape(old), text)
    lines = [text[: place.start()].count("\n") + 1 for place in places]
    if not lines:
        raise WrongCommand(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
        )
    if len(lines) > 1:
        raise WrongCommand(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
            f"{', '.join(map(str, lines))}. Please ensure it is unique"
        )
    return lines[0]


def inserted(new: str, text: str, at: int) -> str:
    """Return a text with new lines behind a line; 0 is its beginning."""
    lines = text.removesuffix("\n").split("\n") if text else []
    if not 0 <= at <= len(lines):
        raise WrongCommand(
            f"Invalid `insert_line` parameter: {at}. It should be within the range "
            f"[0, {len(lines)}]."
        )
    return "\n".join([*lines[:at], new.removesuffix("\n"), *lines[at:]]) + "\n"


def around(text: str, first: int, count: int) -> str:
    """Return some lines of a text with those around them, numbered."""
    begin = max(1, first - _CONTEXT_LINES)
    return numbered(text, (begin, first + count - 1 + _CONTEXT_LINES))


def numbered(text: str, view_range: Sequence[int] | None) -> str:
    """Return the lines of a text, or those from one to another (-1: the last), numbered."""
    lines, first = text.split("\n"), 1
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0])
        lines = lines[first - 1 : None if view_range[1] == -1 else view_range[1]]
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first))


def listed(path: str, files: Files) -> str:
    """Return the files and directories below a path with their sizes, two levels deep."""
    sizes = {name: len(text.encode()) for name, text in sorted(files.items())}
    totals = {path: sum(sizes.values())}
    for name, size in sizes.items():
        parts = name.removeprefix(f"{path}/").split("/")
        for depth in range(1, min(len(parts), _LEVELS) + 1):
            inner = f"{path}/{'/'.join(parts[:depth])}" + ("/" if depth < len(parts) else "")
            totals[inner] = totals.get(inner, 0) + size
    rows = "\n".join(f"{size}B\t{name}" for name, size in totals.items())
    return (
        f"Here're the files and directories up to {_LEVELS} levels deep in {path}, excluding "
        f"hidden items:\n{rows}"
    )
