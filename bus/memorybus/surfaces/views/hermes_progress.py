"""The progress bar of a reconciliation."""

from rich.progress import Progress, TaskID


class ReconcileBars:
    """One bar for each stage, and a word while the log is waited for."""

    def __init__(self, progress: Progress) -> None:
        """Draw on a progress display that is open."""
        self._progress = progress
        self._what = ""
        self._task: TaskID | None = None

    def begin_stage(self, what: str, total: int) -> None:
        """Begin a stage."""
        self._what = what
        self._task = self._progress.add_task(what, total=total)

    def advance(self, count: int) -> None:
        """Go on; the log is not waited for any more."""
        if self._task is not None:
            self._progress.update(self._task, advance=count, description=self._what)

    def show_waiting(self, unsent: int) -> None:
        """Say that the log is waited for."""
        if self._task is None:
            self.begin_stage("wait for the log", 0)
        if self._task is not None:
            what = f"{self._what} (waits for the log: {unsent} events)"
            self._progress.update(self._task, description=what)
