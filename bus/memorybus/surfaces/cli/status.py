"""``memorybus status``: one look, or a look every second."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import App, Parameter
from rich.console import Group

from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import LogUnavailable
from memorybus.surfaces.cli.options import DEFAULT, LOOK, Common, settings_file
from memorybus.surfaces.views.output import Output

if TYPE_CHECKING:
    from memorybus.health.monitor import Status

WATCH_EVERY = 1.0


def register(app: App) -> None:
    """Add this command."""
    app.command(run_status, name="status", group=LOOK)


def run_status(
    *,
    watch: Annotated[
        bool,
        Parameter(negative="", help="Show it anew every second; --json prints one line each."),
    ] = False,
    common: Common = DEFAULT,
) -> int:
    """Show Redis, the spool, the providers' backlog, the workers and the jobs.

    For example:

    - `memorybus status --watch`
    - `memorybus status --json | jq .providers`
    """
    from memorybus.health.monitor import spool_status

    output, settings = common.output(), common.settings()
    try:
        if watch:
            _watch(output, _every_second(settings))
        else:
            _show(output, _status(settings))
            _warn(output, settings)
    except LogUnavailable:
        spool = spool_status(settings)
        output.note(f"{spool.events} events ({spool.bytes} bytes) are spooled on this host")
        raise
    return 0


def _status(settings: Settings) -> "Status":
    from memorybus.health.monitor import read_status

    return msgspec.structs.replace(read_status(settings), settings_file=settings_file())


def _warn(output: Output, settings: Settings) -> None:
    """Name the foreign keys in place of ours: their partitions look idle, and stand still."""
    from memorybus.log.stream import EventLog
    from memorybus.redis.connect import connect_redis

    for key in EventLog(connect_redis(settings), settings).foreign_keys():
        output.note(
            f"{key} holds something that memorybus did not write: rename or delete it", "red"
        )


def _every_second(settings: Settings) -> Iterator["Status"]:
    """Yield looks; from the second on with the rate since the one before."""
    from memorybus.health.monitor import with_published_rate

    looked, before = SYSTEM.monotonic(), _status(settings)
    yield before
    while True:
        SYSTEM.sleep(WATCH_EVERY)
        at, now = SYSTEM.monotonic(), _status(settings)
        yield with_published_rate(before, now, at - looked)
        looked, before = at, now


def _show(output: Output, status: "Status") -> None:
    from memorybus.surfaces.views.status import status_tables

    if output.json:
        output.result(status)
    else:
        for part in status_tables(status, SYSTEM.now_ms()):
            output.show(part)


def _watch(output: Output, looks: Iterator["Status"]) -> None:
    """Show each look in the place of the last on a terminal, else below it."""
    if output.is_live and not output.out.is_dumb_terminal:
        _watch_live(output, looks)
    for status in looks:
        if output.json:
            output.json_line(status)
        else:
            _show(output, status)
            output.show("")


def _watch_live(output: Output, looks: Iterator["Status"]) -> None:
    """Fill a screen of its own, so that nothing of a look remains when the terminal is resized."""
    from rich.live import Live

    from memorybus.surfaces.views.status import Fitted, status_tables

    with Live(console=output.out, auto_refresh=False, screen=True) as live:
        for status in looks:
            live.update(Fitted(Group(*status_tables(status, SYSTEM.now_ms()))), refresh=True)
