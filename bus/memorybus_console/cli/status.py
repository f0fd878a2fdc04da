"""``memorybus status``: show the status once, or again every second."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, LogUnavailable
from rich.console import Group
from rich.text import Text

from memorybus_console.cli.answers import show_line, shown
from memorybus_console.cli.check import presented
from memorybus_console.cli.options import DEFAULT, Common, settings_file
from memorybus_console.result import Presentation, Remark
from memorybus_console.views.output import Output

if TYPE_CHECKING:
    from memorybus.health.status import Status
    from memorybus.health.verdict import Verdict
    from rich.table import Table

WATCH_EVERY = 1.0


@shown
def run_status(
    *,
    watch: Annotated[
        bool,
        Parameter(
            negative="", help="Show it again every second; with --json on one line each time."
        ),
    ] = False,
    check: Annotated[
        bool,
        Parameter(negative="", help="Exit with the code of memorybus check: 0, 1 or 2."),
    ] = False,
    common: Common = DEFAULT,
) -> "Presentation[Status] | Presentation[Verdict] | None":
    """Show Redis, the spool, the providers' backlog, the workers and the jobs.

    Whatever it shows, it ends with exit code 0. With --check it ends with that of memorybus check,
    and a Redis that is away is shown as memorybus check shows it. On a terminal, --watch shows each
    finding on one line; without it, what to do stands below each.

    For example:

    - `memorybus status --watch`
    - `memorybus status --json | jq .providers`
    """
    from memorybus.health.monitor import spool_status
    from memorybus.health.verdict import unreachable_verdict

    if watch and check:
        raise ConfigError("--watch has no end, so it has no exit code: leave out one of the two")
    output, settings = common.output(), common.settings()
    try:
        if watch:
            _watch(output, settings)
            return None
        status = _read_status_here(settings)
        verdict = _judge(settings, status)
        code = verdict.code if check else 0
        return Presentation(status, _parts(status, verdict), _foreign_keys(settings), code)
    except LogUnavailable as error:
        spool = spool_status(settings)
        if check:
            return presented(unreachable_verdict(error, spool))
        output.note(f"{spool.events} events ({spool.bytes} bytes) are spooled on this host")
        raise


def _read_status_here(settings: Settings) -> "Status":
    from memorybus.health.monitor import read_status

    return msgspec.structs.replace(read_status(settings), settings_file=settings_file())


def _judge(settings: Settings, status: "Status") -> "Verdict":
    from memorybus.health.verdict import judge_status

    return judge_status(status, settings.providers, SYSTEM.now_ms())


def _foreign_keys(settings: Settings) -> list[Remark]:
    """Name foreign keys under names of ours: their partitions look idle, but do not work."""
    from memorybus.log.stream import EventLog
    from memorybus.redis.connect import connect_redis

    keys = EventLog(connect_redis(settings), settings).foreign_keys()
    what = "holds something that memorybus did not write: rename or delete it"
    return [Remark(f"{key} {what}", "red") for key in keys]


def _every_second(settings: Settings) -> Iterator["Status"]:
    """Yield the status every second; from the second time on with the rate since the last."""
    from memorybus.health.monitor import with_published_rate

    looked, before = SYSTEM.monotonic(), _read_status_here(settings)
    yield before
    while True:
        SYSTEM.sleep(WATCH_EVERY)
        at, now = SYSTEM.monotonic(), _read_status_here(settings)
        yield with_published_rate(before, now, at - looked)
        looked, before = at, now


def _parts(status: "Status", verdict: "Verdict") -> "Iterator[Table | Text]":
    from memorybus_console.views.status import status_tables

    yield from status_tables(status, verdict.findings, SYSTEM.now_ms())


def _watch(output: Output, settings: Settings) -> None:
    """Show each status in place of the last one on a terminal, else below it."""
    if output.is_live and not output.out.is_dumb_terminal:
        _watch_live(output, settings)
    for status in _every_second(settings):
        parts = [*_parts(status, _judge(settings, status)), Text()]
        show_line(output, Presentation(status, parts))


def _watch_live(output: Output, settings: Settings) -> None:
    """Use the terminal's alternate screen, so that a resize leaves no rest of an old status."""
    from rich.live import Live

    from memorybus_console.views.status import FittedToScreen, status_tables

    with Live(console=output.out, auto_refresh=False, screen=True) as live:
        for status in _every_second(settings):
            findings = _judge(settings, status).findings
            parts = status_tables(status, findings, SYSTEM.now_ms(), remedies=False)
            live.update(FittedToScreen(Group(*parts)), refresh=True)
