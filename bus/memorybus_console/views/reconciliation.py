"""Shows people what a reconciliation found; pure, and safe against hostile text."""

from memorybus.text.display import iso, one_line, visible
from memorybus_hermes.reconcile.reconcile import ReconcileReport, SessionFound
from rich.console import RenderableType
from rich.progress import Progress, TaskID
from rich.text import Text

from memorybus_console.views.render import cell, table

MAX_SESSIONS = 200  # how many sessions are listed; --json lists all


_HEADS = ("session", "started", "from", "user", "turns", "missing", "undone", "too new", "end")


def report_parts(report: ReconcileReport) -> list[RenderableType]:
    more = len(report.sessions) - MAX_SESSIONS
    rows = map(_cells, report.sessions[:MAX_SESSIONS])
    parts: list[RenderableType] = [table(_HEADS, rows)] if report.sessions else []
    parts += [Text(f"… and {more} more sessions (--json lists all)", "dim")] if more > 0 else []
    return [*parts, *(Text(line) for line in _summary_lines(report))]


def _cells(session: SessionFound) -> tuple[object, ...]:
    origin = f"{session.origin} of {session.parent}" if session.parent else session.source
    return (
        one_line(session.session, 40),
        iso(session.started_at) or None,
        one_line(origin, 48),
        one_line(session.user, 20),
        session.turns,
        cell(session.missing, "yellow" if session.missing else ""),
        session.undone or None,
        session.recent or None,
        "missing" if session.ended else None,
    )


def _summary_lines(report: ReconcileReport) -> list[str]:
    compared = (
        f"{report.home}: {report.stored_turns} turns in {report.stored_sessions} sessions "
        f"({report.other_sessions} of cron jobs and sub-agents left out); the log lacks "
        f"{report.missing} turns and {report.memories} memory entries"
    )
    lines = [compared]
    if report.undone:
        lines.append(
            f"the person undid {report.undone} turns of the log in Hermes: "
            + ("they are retracted now" if report.applied else "--apply retracts them")
        )
    if report.forgotten:
        lines.append(
            f"{report.forgotten} turns and entries stay out: their owner was forgotten "
            "(memorybus forget)"
        )
    if report.retracted:
        lines.append(
            f"{report.retracted} of these turns were retracted in the log by mistake: "
            + ("they are there again" if report.applied else "--apply publishes them again")
        )
    if report.recent:
        lines.append(f"{report.recent} turns are too new to compare: the next run does it")
    if report.spooled_elsewhere:
        lines.append(
            f"the log has not taken {report.spooled_elsewhere} events of this host yet: their "
            f"turns count as missing here; --apply waits for them"
        )
    return lines + (_applied_lines(report) if report.applied else _next_steps(report))


def _applied_lines(report: ReconcileReport) -> list[str]:
    lines = [f"published {report.published} turns; a second run adds nothing"]
    if report.trimmed:
        lines.append(f"{report.trimmed} of them without their messages, which were too large")
    lines += [visible(f"refused: {why}") for why in report.refused]
    return lines


def _next_steps(report: ReconcileReport) -> list[str]:
    anything = (
        report.missing
        or report.undone
        or report.memories
        or any(session.ended for session in report.sessions)
    )
    return ["nothing was published; --apply publishes it"] if anything else ["nothing is missing"]


class ReconcileBars:
    """Shows one bar for each stage, and a note while the run waits for the log."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._what = ""
        self._task: TaskID | None = None

    def begin_stage(self, what: str, total: int) -> None:
        self._what = what
        self._task = self._progress.add_task(what, total=total)

    def advance(self, count: int) -> None:
        if self._task is not None:
            self._progress.update(self._task, advance=count, description=self._what)

    def show_waiting(self, unsent: int) -> None:
        if self._task is None:
            self.begin_stage("wait for the log", 0)
        if self._task is not None:
            what = f"{self._what} (waits for the log: {unsent} events)"
            self._progress.update(self._task, description=what)
