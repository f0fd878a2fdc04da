"""Claude's memory tool on the bus: the files below ``/memories`` are a person's memories."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from memorybus import KeyHistory, MemoryBus, Session, store_key
from memorybus.errors import MemoryBusError
from memorybus.events import MemoryWritten

from memorybus_frameworks import memory_files as tree
from memorybus_frameworks import naming_extra
from memorybus_frameworks.memory_files import Files

with naming_extra("Anthropic's SDK", "anthropic"):
    from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError
    from anthropic.types import beta


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

    def view(self, command: beta.BetaMemoryTool20250818ViewCommand) -> str:
        """Return a file's lines with their numbers, or what is in a directory."""
        with self._files(command.path) as (files, path):
            if path not in files:
                return tree.listed(path, tree.inside(path, files))
            lines = tree.numbered(files[path], command.view_range)
            return f"Here's the content of {path} with line numbers:\n{lines}"

    def create(self, command: beta.BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file."""
        with self._files(command.path) as (files, path):
            tree.check_free(path, files)
            self._write({path: command.file_text}, {})
            return f"File created successfully at: {path}"

    def str_replace(self, command: beta.BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that a file has once."""
        with self._files(command.path) as (files, path):
            text, new = tree.text_of(path, files), command.new_str
            line = tree.place_of(command.old_str, text, path)
            changed = text.replace(command.old_str, new)
            self._write({path: changed}, {path: text})
            shown = tree.around(changed, line, new.count("\n") + 1)
            return f"The memory file has been edited. Here is the snippet:\n{shown}"

    def insert(self, command: beta.BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines after a line of a file; 0 is its beginning."""
        with self._files(command.path) as (files, path):
            text = tree.text_of(path, files)
            changed = tree.inserted(command.insert_text, text, command.insert_line)
            self._write({path: changed}, {path: text})
            return f"The file {path} has been edited."

    def delete(self, command: beta.BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a directory with all that is in it."""
        with self._files(command.path) as (files, path):
            self._write({}, tree.inside(path, files, "delete"))
            return f"Successfully deleted {path}"

    def rename(self, command: beta.BetaMemoryTool20250818RenameCommand) -> str:
        """Rename a file or a directory."""
        with self._files(command.old_path) as (files, old):
            new, moved = tree.checked_path(command.new_path), tree.inside(old, files, "rename")
            tree.check_free(new, files)
            for name, text in moved.items():
                self._write({f"{new}{name.removeprefix(old)}": text}, {name: text})
            return f"Successfully renamed {old} to {new}"

    def clear_all_memory(self) -> str:
        """Delete all files."""
        with self._files(tree.ROOT) as (files, _):
            self._write({}, files)
            return "All memory cleared"

    @contextmanager
    def _files(self, path: str) -> Iterator[tuple[Files, str]]:
        """Yield all files and a checked path; what goes wrong the model reads as an error."""
        with self._lock:
            try:
                path = tree.checked_path(path)
                yield tree.fold(self._history.events()), path
            except tree.WrongCommand as error:
                raise ToolError(str(error)) from error
            except MemoryBusError as error:
                raise ToolError(f"Memory cannot be used now: {error}") from error

    def _write(self, new: Files, old: Files) -> None:
        """Publish one write for each path."""
        for path in new or old:
            before = next(iter(old)) if new and old else path
            self._session.memory_written(
                "remove" if not new else "replace" if old else "add",
                f"{path}\n{new[path]}" if new else "",
                store="user",
                old_text=f"{before}\n{old[before]}" if old else "",
                provenance=tree.MARK,
            )
