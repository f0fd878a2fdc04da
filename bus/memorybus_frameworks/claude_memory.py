"""Claude's memory tool on the bus: the files below ``/memories`` are a person's memories."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from memorybus import KeyHistory, MemoryBus, Session, store_key
from memorybus.errors import MemoryBusError, install_command
from memorybus.events import Envelope, MemoryWritten

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError
except ImportError as error:
    remedy = install_command("anthropic")
    raise ImportError(f"Anthropic's SDK is missing ({error}); run: {remedy}") from error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anthropic.types.beta import (
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )

_ROOT = "/memories"
_MARK = MappingProxyType({"tool": "memory_20250818"})
"""The provenance of a write that is a file: its text begins with the path, in a line of its own."""

_LEVELS = 2
_CONTEXT_LINES = 2
_LONGEST_PATH = 500


class MemoryTool(BetaAbstractMemoryTool):
    """The memory tool of one person: each change of a file is an event.

    Every provider gets it, a rebuild repeats it, and other processes and hosts see it.

    Args:
        bus: the bus.
        session: who writes, from ``bus.session(id, agent=…, user=…)``.
    """

    def __init__(self, bus: MemoryBus, session: Session) -> None:
        super().__init__()
        self._session = session
        self._lock = threading.Lock()
        key = store_key("user", session.scope)
        self._history = KeyHistory(bus, key, session.scope, (MemoryWritten.__name__,))

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return a file's lines with their numbers, or what is in a directory."""
        path = _checked(command.path)
        with self._files() as files:
            if path in files:
                return _numbered(path, files[path], command.view_range)
            inside = [name for name in files if name.startswith(f"{path}/")]
            if not inside and path != _ROOT:
                raise _missing(path)
            return _listed(path, {name: len(files[name].encode()) for name in inside})

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file."""
        path = _checked(command.path)
        with self._files() as files:
            _check_free(path, files)
            self._write({path: command.file_text}, {})
        return f"File created successfully at: {path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that a file has once."""
        path = _checked(command.path)
        with self._files() as files:
            text, old = _file(path, files), command.old_str
            lines = [text[:at].count("\n") + 1 for at in _places(text, old)]
            if not lines:
                raise ToolError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in "
                    f"{path}."
                )
            if len(lines) > 1:
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in "
                    f"lines: {', '.join(map(str, lines))}. Please ensure it is unique"
                )
            new = text.replace(old, command.new_str)
            self._write({path: new}, {path: text})
        first = max(1, lines[0] - _CONTEXT_LINES)
        last = lines[0] + command.new_str.count("\n") + _CONTEXT_LINES
        shown = _with_numbers(new.split("\n")[first - 1 : last], first)
        return f"The memory file has been edited. Here is the snippet with line numbers:\n{shown}"

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines after a line of a file; 0 is its beginning."""
        path, at = _checked(command.path), command.insert_line
        with self._files() as files:
            text = _file(path, files)
            lines = text.removesuffix("\n").split("\n") if text else []
            if not 0 <= at <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {at}. It should be within the range "
                    f"[0, {len(lines)}]."
                )
            lines.insert(at, command.insert_text.removesuffix("\n"))
            self._write({path: "\n".join(lines) + "\n"}, {path: text})
        return f"The file {path} has been edited."

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a directory with all that is in it."""
        path = _checked(command.path)
        with self._files() as files:
            self._write({}, _inside(path, files, "delete"))
        return f"Successfully deleted {path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Rename a file or a directory."""
        old, new = _checked(command.old_path), _checked(command.new_path)
        with self._files() as files:
            moved = _inside(old, files, "rename")
            if new in files or any(name.startswith(f"{new}/") for name in files):
                raise ToolError(f"The destination {new} already exists")
            _check_free(new, {name: "" for name in files if name not in moved})
            for name, text in moved.items():
                self._write({f"{new}{name.removeprefix(old)}": text}, {name: text})
        return f"Successfully renamed {old} to {new}"

    def clear_all_memory(self) -> str:
        """Delete all files."""
        with self._files() as files:
            self._write({}, files)
        return "All memory cleared"

    @contextmanager
    def _files(self) -> Iterator[dict[str, str]]:
        """Yield the texts of all files; what the bus cannot do the model reads as an error."""
        with self._lock:
            try:
                yield fold(self._history.events())
            except MemoryBusError as error:
                raise ToolError(f"Memory cannot be used now: {error}") from error

    def _write(self, new: dict[str, str], old: dict[str, str]) -> None:
        """Publish one write for each path."""
        for path in new or old:
            before = next(iter(old)) if new and old else path
            self._session.memory_written(
                "remove" if not new else "replace" if old else "add",
                f"{path}\n{new[path]}" if new else "",
                store="user",
                old_text=f"{before}\n{old[before]}" if old else "",
                provenance=_MARK,
            )


def fold(events: Iterable[Envelope]) -> dict[str, str]:
    """Return the texts of files, by path, after writes in their order; pure.

    A write that is no file corrects or removes the file that has its old text.
    """
    files: dict[str, str] = {}
    for envelope in events:
        event = envelope.event
        if not isinstance(event, MemoryWritten):
            continue
        ours = event.provenance.items() >= _MARK.items()
        if event.old_text.strip():
            path = _path_of(event.old_text, files, ours=ours)
            if path is None:
                continue
            del files[path]
            if event.content and not ours and not event.content.startswith(f"{path}\n"):
                files[path] = event.content
                continue
        elif not ours:
            continue
        if event.content:
            path, _, text = event.content.partition("\n")
            files[path] = text
    return files


def _path_of(old_text: str, files: dict[str, str], *, ours: bool) -> str | None:
    """Return the file that a write names by its old text; None if it names none."""
    if ours:
        path = old_text.partition("\n")[0]
        return path if path in files else None
    named = (path for path, text in files.items() if old_text in f"{path}\n{text}")
    return next(named, None)


def _checked(path: str) -> str:
    """Return a path below ``/memories``, without a slash at its end.

    Raises:
        ToolError: it leads elsewhere, or is no name of a file.
    """
    plain = path.rstrip("/")
    names = plain.split("/")[2:]
    if plain != _ROOT and not plain.startswith(f"{_ROOT}/"):
        raise ToolError(f"Path must start with {_ROOT}, got: {path[:_LONGEST_PATH]}")
    escapes = any(name in ("", ".", "..") or "\\" in name for name in names)
    if escapes or len(plain) > _LONGEST_PATH or not plain.isprintable():
        raise ToolError(f"Path {path[:_LONGEST_PATH]!r} would escape {_ROOT}, or is not a path")
    return plain


def _check_free(path: str, files: Iterable[str]) -> None:
    """Raise `ToolError` if no file can be made at a path."""
    parents = {path[:at] for at in range(len(path)) if path[at] == "/"}
    for name in files:
        if name == path or name.startswith(f"{path}/"):
            raise ToolError(f"File {path} already exists")
        if name in parents:
            raise ToolError(f"The path {name} is a file, not a directory")
    if path == _ROOT:
        raise ToolError(f"File {path} already exists")


def _missing(path: str) -> ToolError:
    return ToolError(f"The path {path} does not exist. Please provide a valid path.")


def _file(path: str, files: dict[str, str]) -> str:
    if path not in files:
        raise _missing(path)
    return files[path]


def _inside(path: str, files: dict[str, str], act: str) -> dict[str, str]:
    """Return a file, or all files of a directory."""
    if path == _ROOT:
        raise ToolError(f"Cannot {act} the {_ROOT} directory itself")
    found = {name: text for name, text in files.items() if f"{name}/".startswith(f"{path}/")}
    if not found:
        raise _missing(path)
    return found


def _places(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0 and part:
        yield at
        at = text.find(part, at + 1)


def _with_numbers(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first))


def _numbered(path: str, text: str, view_range: Sequence[int] | None) -> str:
    lines, first = text.split("\n"), 1
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0])
        lines = lines[first - 1 : None if view_range[1] == -1 else view_range[1]]
    shown = _with_numbers(lines, first)
    return f"Here's the content of {path} with line numbers:\n{shown}"


def _listed(path: str, sizes: dict[str, int]) -> str:
    """Return the files and directories below a path, two levels deep."""
    totals = {path: sum(sizes.values())}
    for name, size in sorted(sizes.items()):
        parts = name.removeprefix(f"{path}/").split("/")
        for depth in range(1, min(len(parts), _LEVELS) + 1):
            inner = f"{path}/{'/'.join(parts[:depth])}" + ("/" if depth < len(parts) else "")
            totals[inner] = totals.get(inner, 0) + size
    rows = "\n".join(f"{size}B\t{name}" for name, size in totals.items())
    return (
        f"Here're the files and directories up to {_LEVELS} levels deep in {path}, excluding "
        f"hidden items:\n{rows}"
    )
