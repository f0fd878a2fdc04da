"""Shows people the status: findings first, then figures; pure."""

from collections.abc import Iterable, Sequence

from memorybus.health.finding import Finding
from memorybus.health.status import (
    JobsStatus,
    ProviderStatus,
    Status,
    WorkerStatus,
    describe_archive,
)
from memorybus.recall.health import PromptCounts
from memorybus.text.display import count_text, format_size
from memorybus.text.times import parse_timestamp
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from memorybus_console.views.figures import duration
from memorybus_console.views.render import (
    add_row,
    cell,
    grid,
    line,
    rate,
    remedy,
    settings_source,
)
from memorybus_console.views.safe import one_line, visible

_MAX_QUOTED_CHARS = 1_000
"""The most characters of a finding that are shown; the JSON form has all."""


def status_tables(status: Status, findings: Iterable[Finding], now_ms: int) -> list[Table | Text]:
    """Return a status as lines and tables: findings first.

    Args:
        status: what ``memorybus status --json`` prints.
        findings: what is wrong.
        now_ms: this machine's wall time in milliseconds.
    """
    return [
        *map(finding_line, findings),
        _head(status),
        _providers(status.providers, now_ms),
        *_copies(status.copies),
        *map(_report_line, (one for one in (*status.providers, *status.copies) if one.reports)),
        *map(_served_by_line, (one for one in status.providers if one.live)),
        *map(_kept_line, (one for one in status.copies if one.kept)),
        *_workers(status.workers, now_ms),
        _jobs(status.jobs, now_ms),
        *map(_recall_failure_line, (one for one in status.jobs if one.error)),
        *_prompts(status.jobs),
    ]


def finding_line(finding: Finding) -> Text:
    """Return a finding as a coloured line, with its remedy below."""
    kind = "DATA LOSS" if finding.code == "data_loss" else finding.severity.upper()
    since = f" (since {finding.since})" if finding.since else ""
    text = visible(f"{kind}: {one_line(finding.text, _MAX_QUOTED_CHARS)}{since}")
    style = "bold red" if finding.severity == "critical" else "yellow"
    return Text.assemble((text, style), remedy(finding.remedy))


def _head(status: Status) -> Text:
    redis, spool = status.redis, status.spool
    oldest = f", the oldest since {spool.oldest_at}" if spool.oldest_at else ""
    disk = "" if status.disk is None else f"\nDisk: {status.disk}"
    return line(
        f"Settings: {settings_source(status.settings_file)}\n"
        f"{redis.product} {redis.version} at {redis.url} ({redis.durability}), "
        f"{status.partitions} partitions\n"
        f"Log: {count_text(status.log.published, 'event')} published{_published_rate(status)}\n"
        f"Spool: {count_text(spool.events, 'unsent event')}, {format_size(spool.bytes)}{oldest}\n"
        f"Memory: {status.memory}{disk}\n"
        f"Archive: {describe_archive(status.archive)}"
    )


def _published_rate(status: Status) -> str:
    now = rate(status.published_rate)
    return "" if now is None else f", {now} events/s"


def _providers(providers: Sequence[ProviderStatus], now_ms: int) -> Table:
    table = grid(
        *("provider", "applied", "events/s", "backlog", "ETA", "oldest"),
        *("refused", "behind", "lanes"),
    )
    for one in providers:
        add_row(
            table,
            one.name,
            one.applied,
            rate(one.rate),
            cell(one.backlog, "yellow" if one.backlog else ""),
            duration(one.seconds_left) or None,
            _ago(one.oldest_unapplied_at, now_ms),
            cell(one.refused, "red" if one.refused else ""),
            cell(one.waiting_behind, "red" if one.waiting_behind else ""),
            cell(_lanes(one), "" if one.lanes_owned else "yellow"),
        )
    return table


def _ago(at: str | None, now_ms: int) -> str | None:
    """Return how long ago a time of the status was."""
    return None if at is None else duration((now_ms - parse_timestamp(at)) / 1_000)


def _copies(copies: Sequence[ProviderStatus]) -> Iterable[Table]:
    """Yield the table of the copies, which serve no recalls, if there are any."""
    if not copies:
        return
    table = grid("copy", "of", "backlog", "parked", "lanes")
    for one in copies:
        to_do = None if one.kept else one.backlog  # a rollback brings it up to date
        add_row(table, one.name, one.copy_of, to_do, one.parked_keys, _lanes(one))
    yield table


def _lanes(provider: ProviderStatus) -> str:
    return f"{provider.lanes_owned}/{provider.lanes}"


def _served_by_line(provider: ProviderStatus) -> Text:
    return cell(f"{provider.name} is served by {provider.live}", "dim")


def _report_line(provider: ProviderStatus) -> Text:
    """Return what an instance reports about itself; the text may quote a service."""
    return cell(one_line(f"{provider.name}: {provider.reports}", _MAX_QUOTED_CHARS), "yellow")


def _kept_line(copy: ProviderStatus) -> Text:
    return cell(f"{copy.name} is paused, {copy.paused}", "dim")


def _workers(workers: Sequence[WorkerStatus], now_ms: int) -> Iterable[Table]:
    if not workers:
        return
    table = grid("worker", "host", "pid", "lanes", "last seen")
    for one in workers:
        add_row(table, one.id, one.host, one.pid, one.lanes, _ago(one.heartbeat_at, now_ms))
    yield table


def _jobs(jobs: Sequence[JobsStatus], now_ms: int) -> Table:
    table = grid("queue", "queued", "oldest", "started", "failed", "skipped")
    for one in jobs:
        add_row(
            table,
            one.queue,
            one.queued,
            _ago(one.oldest_at, now_ms),
            one.started,
            cell(one.failed, "red" if one.failing else ""),
            f"{one.skipped}{' (paused)' if one.paused else ''}",
        )
    return table


def _recall_failure_line(one: JobsStatus) -> Text:
    failure = f"{one.queue}: the last failure, {one.failed_at}: {one.error}"
    return cell(one_line(failure, _MAX_QUOTED_CHARS), "red" if one.failing else "dim")


def _prompts(jobs: Sequence[JobsStatus]) -> Iterable[Table]:
    """Yield the table of how prompts were answered, if there were any."""
    counts = [(queue.provider, queue.prompts) for queue in jobs if queue.prompts != PromptCounts()]
    if not counts:
        return
    table = grid("prompts", "warm", "fresh", "late", "no match", "mean wait")
    for name, of in counts:
        mean = None if of.mean_ms is None else f"{of.mean_ms:.0f} ms"
        late = cell(of.late, "yellow" if of.late else "")
        add_row(table, name, of.warm, of.fresh, late, of.nothing, mean)
    yield table


class FittedToScreen:
    """A renderable cut to the height of the terminal; its last line counts the hidden lines.

    Args:
        what: what is shown.
    """

    def __init__(self, what: RenderableType) -> None:
        self._what = what

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines that fit."""
        lines = console.render_lines(self._what, options.update(height=None), pad=False)
        rows = options.height or options.max_height
        hidden = len(lines) - max(0, rows - 1) if len(lines) > rows else 0
        for one in lines[: len(lines) - hidden]:
            yield from one
            yield Segment.line()
        if hidden:
            more = count_text(hidden, "more line")
            note = f"… {more}: enlarge the terminal, or run `memorybus status`"
            yield Text(note, style="yellow", overflow="crop", no_wrap=True)
