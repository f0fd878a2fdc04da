"""Commands that run something: demo, up, worker."""

from typing import Annotated

from cyclopts import App, Parameter

from memorybus.surfaces import children, demo, up
from memorybus.surfaces.cli.demo_view import DemoView
from memorybus.surfaces.cli.options import DEFAULT, RUN, Common
from memorybus.surfaces.output import Output
from memorybus.surfaces.signals import TERMINATED

PAUSE = 0.06
"""Seconds between the demo's steps where a person looks on."""

Providers = Annotated[
    str | None, Parameter(help="Provider instances, by comma; those of the settings if none.")
]
Jobs = Annotated[int | None, Parameter(help="Processes that answer recalls.")]


def register(app: App) -> None:
    """Add this group's commands."""
    app.command(run_demo, name="demo", group=RUN)
    app.command(run_up, name="up", group=RUN)
    app.command(run_worker, name="worker", group=RUN)


def run_demo(*, json: Annotated[bool, Parameter(negative="")] = False) -> int:
    """See the whole system work, on a Redis of its own, in a few seconds.

    An agent plays a conversation over two sessions; a worker feeds two providers; a third session
    asks a question and gets its memories from the warm cache. Nothing is left behind.

    Parameters
    ----------
    json
        Print one JSON object: published, applied, recalled, seconds.
    """
    output = Output(json=json)
    if json:
        result = demo.run(lambda _: None)
        fields = ("published", "applied", "recalled", "seconds")
        output.result({name: getattr(result, name) for name in fields})
        return 0
    with DemoView(output) as view:
        result = demo.run(view.watch, pause=PAUSE if output.is_live else 0.0)
    view.conclude(result)
    return 0


def run_up(*, providers: Providers = None, jobs: Jobs = None, common: Common = DEFAULT) -> int:
    """Run the embedded Redis and a worker in one process tree; Ctrl-C stops it whole.

    With a configured url no Redis is started. A worker that dies is started again.

    For example:

    - `memorybus up`
    - `memorybus up --url redis://10.0.0.5:6379 --providers holographic`
    """
    output = common.output()
    settings = common.settings()
    names = _names(providers) or settings.providers
    command = children.worker_command(names, jobs, with_parent=True)
    try:
        up.run(settings, command, lambda news: _tell(output, news))
    except KeyboardInterrupt:
        output.note("stopped")
    except SystemExit as end:
        if end.code != TERMINATED:
            raise
    return 0


def run_worker(*, providers: Providers = None, jobs: Jobs = None, common: Common = DEFAULT) -> int:
    """Run one worker against a Redis that is already up.

    For example:

    - `memorybus worker --providers holographic --jobs 2`
    """
    command = children.worker_command(_names(providers), jobs)
    children.become(command, common.settings())


def _names(providers: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (providers or "").split(",") if name.strip())


def _tell(output: Output, news: up.News) -> None:
    if isinstance(news, up.Ready):
        _tell_ready(output, news)
    elif isinstance(news, up.WorkerDied):
        output.note(
            f"the worker ended (exit code {news.exit_code}); another starts in {news.delay:g} s",
            "yellow",
        )
    else:
        output.note(f"the Redis server had gone and was started again (pid {news.pid})", "yellow")


def _tell_ready(output: Output, ready: up.Ready) -> None:
    if output.json:
        output.json_line(ready)
        return
    whose = "embedded" if ready.embedded else "configured: no server of ours was started"
    output.show(f"memorybus is up. Redis: {ready.redis} ({whose}), worker {ready.worker}")
    if ready.adopted:
        output.show(
            f"The server ran already (pid {ready.server_pid}) and will go on when this stops."
        )
    output.show("Now, in another terminal:")
    for line in ("ingest FILE…", "recall QUESTION", "status --watch", "events tail"):
        output.show(f"  memorybus {line}")
    output.show("Ctrl-C stops it.")
