"""Runs a worker as a process, with its ready line, its signals and its exit code."""

from collections.abc import Sequence

from memorybus.config.settings import Settings
from memorybus.processes.garbage import freeze_heap
from memorybus.processes.lean import load_redis

from memorybus_workers.processes.exit_codes import FAILED
from memorybus_workers.processes.exporting import export_spans
from memorybus_workers.processes.json_line import print_json_line
from memorybus_workers.processes.orderly_end import OrderlyEnd
from memorybus_workers.processes.parent import call_when_parent_ends


def _report_given_up(provider: str) -> None:
    print_json_line({"apart": provider})


def _report_ready(name: str) -> None:
    freeze_heap()
    print_json_line({"ready": True, "worker": name})


def run_worker(
    settings: Settings,
    providers: Sequence[str],
    jobs: int,
    *,
    with_parent: bool = False,
    mark: str = "",
    only: str = "",
    among: Sequence[str] = (),
) -> int:
    """Run a worker until it is told to end; return the exit code, 1 if it had to give up.

    Args:
        providers: the instances to serve.
        jobs: its recall processes for each provider.
        with_parent: end when the process that started this one ends, and report to it the providers
            that we give up.
        mark: see `Worker`.
        only: see `Worker`.
        among: see `Worker`.

    Raises:
        MemoryBusError: see `Worker.run`.
    """
    # Imported late: a supervisor does not need it, and starts faster without it.
    load_redis()
    from memorybus_workers.processes.worker import Worker

    give_up = _report_given_up if with_parent else None
    worker = Worker(settings, providers, jobs, mark=mark, only=only, among=among, give_up=give_up)
    ending = OrderlyEnd(settings, worker.stop)
    ending.install()
    if with_parent:
        call_when_parent_ends(ending.request_as_orphan)
    with export_spans():
        worker.run(_report_ready)
    return FAILED if worker.failed else 0
