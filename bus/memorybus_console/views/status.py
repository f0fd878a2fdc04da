"""Shows people the status: findings first, then figures; pure."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
from memorybus.health.finding import Finding
from memorybus.health.status import (
    JobsStatus,
    ProviderStatus,
    Status,
    WorkerStatus,
    describe_archive,
)
from memorybus.recall.health import PromptCounts
from memorybus.text.display import count_text, format_size, one_line, visible
from memorybus.text.times import parse_timestamp
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from memorybus_console.result import Column
from memorybus_console.views.presenter import table_of
from memorybus_console.views.render import (
    cell,
    duration,
    line,
    rate,
    remedy,
    settings_source,
    table,
)

_UNWRAPPED = 10_000  # a width in which no line is wrapped

_MAX_QUOTED_CHARS = 1_000  # the most characters of a finding that are shown; the JSON form has all


def status_tables(
    status: Status, findings: Sequence[Finding], now_ms: int, *, remedies: bool = True
) -> list[Table | Text]:
    """Return a status as lines and tables: findings first.

    Args:
        status: what ``memorybus status --json`` prints.
        now_ms: this machine's wall time in milliseconds.
        remedies: whether each finding has its remedy below it; otherwise it is one line.
    """
    hint = [] if remedies or not findings else [line("→ what to do: memorybus status", "yellow")]
    rows = [provider_row(provider, now_ms) for provider in status.providers]
    return [
        *(finding_line(finding, with_remedy=remedies) for finding in findings),
        *hint,
        _head(status),
        *([table_of(rows, without="state")] if rows else []),
        *_copies(status.copies),
        *_remarks(status),
        *_workers(status.workers, now_ms),
        _jobs(status.jobs, now_ms),
        *(_recall_failure_line(jobs) for jobs in status.jobs if jobs.error),
        *_prompts(status.jobs),
    ]


def finding_line(finding: Finding, *, with_remedy: bool = True) -> Text:
    kind = "DATA LOSS" if finding.code == "data_loss" else finding.severity.upper()
    since = f" (since {finding.since})" if finding.since else ""
    text = visible(f"{kind}: {one_line(finding.text, _MAX_QUOTED_CHARS)}{since}")
    style = "bold red" if finding.severity == "critical" else "yellow"
    return Text.assemble((text, style), remedy(finding.remedy) if with_remedy else "")


def _head(status: Status) -> Text:
    redis, spool = status.redis, status.spool
    oldest = f", the oldest since {spool.oldest_at}" if spool.oldest_at else ""
    disk = "" if status.disk is None else f"\nDisk: {status.disk}"
    model = "" if status.model is None else f"\nModel: {status.model}"
    return line(
        f"Settings: {settings_source(status.settings_file)}\n"
        f"{redis.product} {redis.version} at {redis.url} ({redis.durability}), "
        f"{status.partitions} partitions\n"
        f"Log: {_published(status)}\n"
        f"Spool: {count_text(spool.events, 'unsent event')}, {format_size(spool.bytes)}{oldest}\n"
        f"Memory: {status.memory}{disk}\n"
        f"Archive: {describe_archive(status.archive)}{model}"
    )


def _published(status: Status) -> str:
    if not status.log.published and not status.published_rate:
        return "nothing published yet: connect an agent, or memorybus ingest FILE"
    now = rate(status.published_rate)
    events = f"{count_text(status.log.published, 'event')} published"
    return events if now is None else f"{events}, {now} events/s"


class ProviderRow(msgspec.Struct, frozen=True):
    """A provider as `status` and `top` show it."""

    provider: str
    state: Text
    backlog: Annotated[int, Column(style="yellow")]
    rate: Annotated[float | None, Column(title="events/s", unit="rate")]
    seconds_left: Annotated[float | None, Column(title="ETA", unit="seconds")]
    age: str | None
    refused: Annotated[int, Column(style="red")]
    behind: Annotated[int, Column(style="red")]
    lanes: str
    applied: int


def provider_row(provider: ProviderStatus, now_ms: int) -> ProviderRow:
    """Return a provider as a row.

    `age` is that of the oldest event to apply; `behind` counts what waits behind a refused event.
    """
    return ProviderRow(
        provider=provider.name,
        state=_state(provider),
        backlog=provider.backlog,
        rate=provider.rate,
        seconds_left=provider.seconds_left or None,
        age=_ago(provider.oldest_unapplied_at, now_ms),
        refused=provider.refused,
        behind=provider.waiting_behind,
        lanes=_lanes(provider),
        applied=provider.applied,
    )


def _state(provider: ProviderStatus) -> Text:
    """Return a provider's state in one word; the findings have more."""
    if provider.paused:
        return Text("paused", "yellow")
    if provider.failing:
        return Text("failing", "bold red")
    if not provider.lanes_owned:
        return Text("unserved", "bold red")
    if provider.parked_keys:
        return Text("parked", "bold red")
    return Text("behind", "yellow") if provider.backlog else Text("ok", "green")


def _ago(at: str | None, now_ms: int) -> str | None:
    """Return how long ago a time of the status was."""
    return None if at is None else duration((now_ms - parse_timestamp(at)) / 1_000)


def _copies(copies: Sequence[ProviderStatus]) -> list[Table]:
    """Return the table of the copies, which serve no recalls, if there are any."""
    rows = [
        # A rollback brings one that is kept up to date: it has nothing to do now.
        (c.name, c.copy_of, None if c.kept else c.backlog, c.parked_keys, _lanes(c))
        for c in copies
    ]
    return _table_if(("copy", "of", "backlog", "parked", "lanes"), rows)


def _table_if(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[Table]:
    return [table(heads, rows)] if rows else []


def _lanes(provider: ProviderStatus) -> str:
    return f"{provider.lanes_owned}/{provider.lanes}"


def _remarks(status: Status) -> Iterator[Text]:
    """Yield what instances report about themselves, what serves in their place, and what is kept.

    A report may quote a service.
    """
    for each in (*status.providers, *status.copies):
        if each.reports:
            yield cell(one_line(f"{each.name}: {each.reports}", _MAX_QUOTED_CHARS), "yellow")
    yield from (cell(f"{p.name} is served by {p.live}", "dim") for p in status.providers if p.live)
    yield from (cell(f"{c.name} is paused, {c.paused}", "dim") for c in status.copies if c.kept)


def _workers(workers: Sequence[WorkerStatus], now_ms: int) -> list[Table]:
    rows = [(w.id, w.host, w.pid, w.lanes, _ago(w.heartbeat_at, now_ms)) for w in workers]
    return _table_if(("worker", "host", "pid", "lanes", "last seen"), rows)


def _jobs(jobs: Sequence[JobsStatus], now_ms: int) -> Table:
    rows = (
        (
            *(each.queue, each.queued, _ago(each.oldest_at, now_ms), each.started),
            cell(each.failed, "red" if each.failing else ""),
            f"{each.skipped}{' (paused)' if each.paused else ''}",
        )
        for each in jobs
    )
    return table(("queue", "queued", "oldest", "started", "failed", "skipped"), rows)


def _recall_failure_line(jobs: JobsStatus) -> Text:
    text = f"{jobs.queue}: the last failure, {jobs.failed_at}: {jobs.error}"
    return cell(one_line(text, _MAX_QUOTED_CHARS), "red" if jobs.failing else "dim")


def _prompts(jobs: Sequence[JobsStatus]) -> list[Table]:
    counts = [(each.provider, each.prompts) for each in jobs if each.prompts != PromptCounts()]
    rows = [
        (
            *(name, prompts.warm, prompts.fresh),
            cell(prompts.late, "yellow" if prompts.late else ""),
            prompts.nothing,
            None if prompts.mean_ms is None else f"{prompts.mean_ms:.0f} ms",
        )
        for name, prompts in counts
    ]
    return _table_if(("prompts", "warm", "fresh", "late", "no match", "mean wait"), rows)


class FittedToScreen:
    """A renderable cut to the terminal: no line is wrapped, and the last counts the hidden ones."""

    def __init__(self, what: RenderableType) -> None:
        self._what = what

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.update(width=_UNWRAPPED, height=None)
        lines = console.render_lines(self._what, wide, pad=False)
        rows = options.height or options.max_height
        hidden = len(lines) - max(0, rows - 1) if len(lines) > rows else 0
        for segments in lines[: len(lines) - hidden]:
            yield from _cut(segments, options.max_width)
            yield Segment.line()
        if hidden:
            hint = f"… {count_text(hidden, 'more line')}: enlarge the terminal, or memorybus status"
            yield Text(hint, style="yellow", overflow="crop", no_wrap=True)


def _cut(segments: list[Segment], width: int) -> list[Segment]:
    """Return a line cut to a width; an ellipsis stands for the rest."""
    if Segment.get_line_length(segments) <= width:
        return segments
    return [*Segment.adjust_line_length(segments, width - 1, pad=False), Segment("…")]
