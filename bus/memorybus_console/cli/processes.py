"""The commands that run processes: demo, up, worker."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, NotRequired, TypedDict

from cyclopts import Parameter
from memorybus.processes import commands, signals

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import (
    DEFAULT_WORKER,
    WorkerOptions,
    check_names,
    not_negative,
    positive,
    split_names,
)
from memorybus_console.result import Prints
from memorybus_console.views.output import Output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memorybus_console.operations import up

_NEXT_COMMANDS = (
    "ingest FILE…",
    'recall "QUESTION" --all-users --all-agents',
    "status --watch",
    "events tail",
)
"""What a person can do once everything runs; the question asks for memories of any agent."""

ServedProvidersOption = Annotated[
    str | None,
    Parameter(
        help="Provider instances, comma-separated; by default those of the settings.",
        validator=check_names,
    ),
]
RecallJobsOption = Annotated[
    int | None,
    Parameter(
        help="Processes for each provider that answer recalls; 0 for none.",
        validator=not_negative,
    ),
]
ProcessesOption = Annotated[
    int, Parameter(help="Worker processes that share the lanes.", validator=positive)
]
MetricsOption = Annotated[
    str | None,
    Parameter(help="Serve metrics for Prometheus at HOST:PORT; PORT alone means 127.0.0.1."),
]


class Demonstrated(TypedDict):
    """What the demo did, see `memorybus demo`; `caught_up` has seconds, by provider."""

    published: int
    applied: dict[str, int]
    caught_up: dict[str, float]
    recalled: str
    seconds: float


class WorkersReady(TypedDict):
    """The line of `memorybus worker` when all are ready; `metrics` if they are served."""

    ready: bool
    worker: str
    workers: list[str]
    metrics: NotRequired[str]


@shown
def run_demo(
    *, json: Annotated[bool, Parameter(negative="")] = False
) -> "Annotated[int, Prints(Demonstrated)]":
    """See the whole system work, on a Redis of its own, in a few seconds.

    An agent plays a conversation over two sessions; a worker feeds two providers; a third session
    asks a question and gets its memories from the warm cache. Nothing is left behind.

    For example:

    - `memorybus demo`
    - `memorybus demo --json | jq .applied`

    Parameters
    ----------
    json
        Print one JSON object: published, applied, caught_up, recalled, seconds.
    """
    from memorybus_console.operations.demo import run_demo as play_demo
    from memorybus_console.views.demo import show_result, show_step

    output = Output(json=json)
    if json:
        result = play_demo(lambda *_: None)
        fields = ("published", "applied", "caught_up", "recalled", "seconds")
        output.result({name: getattr(result, name) for name in fields})
        return 0
    output.show("Starting a Redis and a worker of our own…")
    show_result(output, play_demo(partial(show_step, output)))
    return 0


@shown
def run_up(
    *,
    providers: ServedProvidersOption = None,
    processes: ProcessesOption = 1,
    jobs: RecallJobsOption = None,
    metrics: MetricsOption = None,
    common: WorkerOptions = DEFAULT_WORKER,
) -> "Annotated[int, Prints(Iterator[up.Ready])]":
    """Run the embedded Redis and a worker in one process tree; Ctrl-C stops it whole.

    If a url is configured, no Redis is started. A worker that dies is started again; a worker that
    cannot run with these settings ends the command. The first Ctrl-C or SIGTERM ends it in order,
    with exit code 0; a second one ends it at once, with 130 (Ctrl-C) or 143 (SIGTERM).

    For example:

    - `memorybus up`
    - `memorybus up --processes 4 --metrics 9464`
    - `memorybus up --url redis://10.0.0.5:6379 --providers holographic`
    """
    from memorybus_console.operations import up

    output = common.output()
    settings = common.settings()
    served = split_names(providers) or settings.providers
    command = commands.worker_command(
        served, jobs, processes=processes, with_parent=True, metrics=metrics or ""
    )
    try:
        up.run(settings, command, lambda news: _show_news(output, news))
    except KeyboardInterrupt as end:
        return _report_stop(output, end)
    except SystemExit as end:
        if end.code != signals.TERMINATED:
            raise
        return _report_stop(output, end)
    return 0


def _report_stop(output: Output, end: BaseException) -> int:
    code = signals.hurried_exit_code(end)
    if not output.json:
        output.note("stopped at once" if code else "stopped")
    return code


@shown
def run_worker(
    *,
    providers: ServedProvidersOption = None,
    processes: ProcessesOption = 1,
    jobs: RecallJobsOption = None,
    metrics: MetricsOption = None,
    common: WorkerOptions = DEFAULT_WORKER,
) -> "Annotated[int, Prints(Iterator[WorkersReady])]":
    """Run a worker against a Redis that runs already; wait for Redis if it does not answer.

    Any number of workers, on any number of hosts, share the lanes of shared providers; the lanes of
    a local provider stay with the data directory that holds its state. With --processes a
    supervisor runs several workers, and restarts those that die. When all are ready, one JSON line
    is printed, with or without --json.

    On SIGTERM or Ctrl-C the worker finishes its batch, gives up its lanes, and ends with exit code
    0. On a second signal, or after --grace seconds, it ends at once with exit code 1, and other
    workers take the lanes over when the leases have expired.

    For example:

    - `memorybus worker --providers holographic --jobs 2`
    - `memorybus worker --url redis://10.0.0.5:6379 --processes 4 --concurrency 32 --log json`
    """
    command = commands.worker_command(
        split_names(providers),
        jobs,
        processes=processes,
        json=common.json,
        metrics=metrics or "",
    )
    commands.become(command, common.settings())


def _show_news(output: Output, news: "up.ProcessNews") -> None:
    from memorybus_console.operations import up

    if isinstance(news, up.Ready):
        _show_ready(output, news)
    elif isinstance(news, up.WorkerDied):
        why = f": {news.reason}" if news.reason else ""
        output.note(
            f"the worker ended (exit code {news.exit_code}){why}; another starts in "
            f"{news.delay:g} s",
            "yellow",
        )
    else:
        output.note(f"the Redis server had gone and was started again (pid {news.pid})", "yellow")


def _show_ready(output: Output, ready: "up.Ready") -> None:
    if output.json:
        output.json_line(ready)
        return
    origin = "embedded" if ready.embedded else "configured: no server of ours was started"
    who = "worker" if len(ready.workers) == 1 else "workers"
    listed = ", ".join(ready.workers)
    output.show(f"memorybus is up. Redis: {ready.redis} ({origin}), {who} {listed}")
    if ready.adopted:
        output.show(
            f"The server ran already (pid {ready.server_pid}) and will continue when this stops."
        )
    if ready.metrics:
        output.show(f"Metrics: http://{ready.metrics}/metrics")
    output.show("Publish with an agent (MemoryBus.connect), or, in another terminal:")
    for line in _NEXT_COMMANDS:
        output.show(f"  memorybus {line}")
    output.show("Ctrl-C stops it.")
