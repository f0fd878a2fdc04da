"""Acts on the log by way of an archive: import its events."""

from dataclasses import dataclass
from pathlib import Path

from memorybus.query.query import EVERYTHING, Query

from memorybus_console.actions.action import Action, Ground
from memorybus_console.operations.archive import import_archive
from memorybus_console.operations.ingest.new_events import ImportResult


@dataclass(frozen=True, kw_only=True)
class ImportArchive(Action[ImportResult, ImportResult]):
    """Publish the events of an archive into this log, in order; skip those that it has already."""

    title = "import archive"
    recorded = ("directory",)

    directory: Path
    query: Query = EVERYTHING

    def plan(self, ground: Ground) -> ImportResult:
        """Return what would be published; change nothing."""
        return self._import(ground, execute=False)

    def carry_out(self, ground: Ground) -> ImportResult:
        """Publish them."""
        return self._import(ground, execute=True)

    def _import(self, ground: Ground, *, execute: bool) -> ImportResult:
        read = 0

        def step() -> None:
            nonlocal read
            read += 1
            ground.progress("import", read, 0)

        return import_archive(ground.settings, self.directory, self.query, step, execute=execute)
