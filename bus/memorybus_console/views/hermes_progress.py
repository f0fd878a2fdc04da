"""Shows the progress of a reconciliation as bars."""

from rich.progress import Progress, TaskID


class ReconcileBars:
    """Shows one bar for each stage, and a note while the run waits for the log."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._what = ""
        self._task: TaskID | None = None

    def begin_stage(self, what: str, total: int) -> None:
        """Begin a stage."""
        self._what = what
        self._task = self._progress.add_task(what, total=total)

    def advance(self, count: int) -> None:
        """Advance the bar, and remove the note."""
        if self._task is not None:
            self._progress.update(self._task, advance=count, description=self._what)

    def show_waiting(self, unsent: int) -> None:
        """Show the note that the run waits for the log."""
        if self._task is None:
            self.begin_stage("wait for the log", 0)
        if self._task is not None:
            what = f"{self._what} (waits for the log: {unsent} events)"
            self._progress.update(self._task, description=what)
